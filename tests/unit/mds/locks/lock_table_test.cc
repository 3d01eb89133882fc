#include "mds/locks/lock_table.h"

#include <gtest/gtest.h>

namespace weir::mds {
namespace {

class LockTableTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kFile = 9;

  LockWish Wish(uint64_t session, uint64_t owner, bool write, uint64_t byte) {
    LockWish wish;
    wish.inode = kFile;
    wish.lock = {.owner = {session, owner}, .first = byte, .last = byte, .write = write};
    wish.wait = true;
    wish.ticket = ++tickets_;
    return wish;
  }
  LockVerdict Set(const LockWish& wish) { return table_.Set(wish, &told_); }
  void Unlock(const LockWish& wish) {
    table_.Clear(wish, &told_);
    Tell();
  }
  void Tell() {
    for (auto& [tell, verdict] : std::exchange(told_, {})) tell(verdict);
  }
  // What a ticket's outcome was, kWaiting while there is none.
  LockVerdict Ask(const LockWish& wish) {
    auto heard = std::make_shared<LockVerdict>(LockVerdict::kWaiting);
    table_.Await(
        wish.lock.owner.session, wish.ticket, [heard](LockVerdict verdict) { *heard = verdict; },
        &told_);
    Tell();
    return *heard;
  }

  LockTable table_;
  LockTable::Told told_;
  uint64_t tickets_ = 0;
};

TEST_F(LockTableTest, WhoWaitsIsServedInOrder) {
  const LockWish holder = Wish(1, 1, true, 0);
  const LockWish second = Wish(2, 1, true, 0);
  const LockWish third = Wish(3, 1, true, 0);
  EXPECT_EQ(Set(holder), LockVerdict::kGranted);
  EXPECT_EQ(Set(second), LockVerdict::kWaiting);
  EXPECT_EQ(Set(third), LockVerdict::kWaiting);
  Unlock(holder);
  EXPECT_EQ(Ask(second), LockVerdict::kGranted);
  EXPECT_EQ(Ask(third), LockVerdict::kWaiting);
  Unlock(second);
  Unlock(third);
  EXPECT_EQ(table_.waiting(), 0u) << "told while it was asking";
  EXPECT_EQ(table_.files(), 0u);
}

TEST_F(LockTableTest, AnOutcomeIsToldOnceAndThenUnknown) {
  const LockWish holder = Wish(1, 1, true, 0);
  const LockWish waiter = Wish(2, 1, true, 0);
  Set(holder);
  Set(waiter);
  Unlock(holder);
  EXPECT_EQ(Ask(waiter), LockVerdict::kGranted);
  EXPECT_EQ(Ask(waiter), LockVerdict::kUnknown);
  EXPECT_EQ(Set(waiter), LockVerdict::kGranted) << "it has it";
}

TEST_F(LockTableTest, ADowngradeLetsReadersIn) {
  LockWish holder = Wish(1, 1, true, 0);
  const LockWish reader = Wish(2, 1, false, 0);
  Set(holder);
  EXPECT_EQ(Set(reader), LockVerdict::kWaiting);
  holder.lock.write = false;
  EXPECT_EQ(Set(holder), LockVerdict::kGranted);
  EXPECT_EQ(Ask(reader), LockVerdict::kGranted);
}

TEST_F(LockTableTest, ACancelledWaiterLeavesNothing) {
  const LockWish holder = Wish(1, 1, true, 0);
  const LockWish waiter = Wish(2, 1, true, 0);
  Set(holder);
  Set(waiter);
  table_.Cancel(2, waiter.ticket, &told_);
  EXPECT_EQ(Ask(waiter), LockVerdict::kCancelled);
  Unlock(holder);
  EXPECT_FALSE(table_.Conflict(holder).has_value());
  EXPECT_EQ(table_.files(), 0u);
}

TEST_F(LockTableTest, CirclesOfTwoAndThreeAreRefused) {
  for (uint64_t owner = 1; owner <= 3; ++owner) {
    EXPECT_EQ(Set(Wish(owner, owner, true, owner)), LockVerdict::kGranted);
  }
  EXPECT_EQ(Set(Wish(1, 1, true, 2)), LockVerdict::kWaiting);
  EXPECT_EQ(Set(Wish(2, 2, true, 1)), LockVerdict::kDeadlock);
  EXPECT_EQ(Set(Wish(2, 2, true, 3)), LockVerdict::kWaiting);
  EXPECT_EQ(Set(Wish(3, 3, true, 1)), LockVerdict::kDeadlock);
  EXPECT_EQ(Set(Wish(4, 4, true, 1)), LockVerdict::kWaiting) << "waits for a circle, is in none";
}

TEST_F(LockTableTest, FlockKnowsNoCirclesAndIsAnothersBusiness) {
  const auto flock = [&](uint64_t owner, uint64_t file) {
    LockWish wish = Wish(owner, owner, true, 0);
    wish.inode = file;
    wish.flock = true;
    return Set(wish);
  };
  EXPECT_EQ(flock(1, 1), LockVerdict::kGranted);
  EXPECT_EQ(flock(2, 2), LockVerdict::kGranted);
  EXPECT_EQ(flock(1, 2), LockVerdict::kWaiting);
  EXPECT_EQ(flock(2, 1), LockVerdict::kWaiting);
  LockWish range = Wish(3, 3, true, 0);
  range.inode = 1;
  EXPECT_EQ(Set(range), LockVerdict::kGranted);
}

TEST_F(LockTableTest, AnEndedSessionFreesWhatItHeldAndNoLongerWaits) {
  const LockWish holder = Wish(1, 1, true, 0);
  const LockWish waiter = Wish(2, 1, true, 0);
  const LockWish dead = Wish(3, 1, true, 0);
  Set(holder);
  Set(dead);
  Set(waiter);
  table_.DropSession(3, &told_);
  table_.DropSession(1, &told_);
  Tell();
  EXPECT_EQ(Ask(dead), LockVerdict::kUnknown);
  EXPECT_EQ(Ask(waiter), LockVerdict::kGranted);
}

}  // namespace
}  // namespace weir::mds
