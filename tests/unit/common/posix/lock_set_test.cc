#include "common/posix/lock_set.h"

#include <gtest/gtest.h>

#include <array>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir {
namespace {

FileLock Lock(uint64_t owner, uint64_t first, uint64_t last, bool write) {
  return {.owner = {1, owner}, .first = first, .last = last, .write = write};
}

TEST(LockSetTest, ReadersShareAndWritersDoNot) {
  LockSet set;
  set.Set(Lock(1, 10, 19, false));
  EXPECT_FALSE(set.Conflict(Lock(2, 0, 100, false)).has_value());
  EXPECT_TRUE(set.Conflict(Lock(2, 19, 100, true)).has_value());
  EXPECT_FALSE(set.Conflict(Lock(2, 20, 100, true)).has_value());
  EXPECT_FALSE(set.Conflict(Lock(1, 0, 100, true)).has_value()) << "nobody is in his own way";
}

TEST(LockSetTest, TheLowestInTheWayIsNamed) {
  LockSet set;
  set.Set(Lock(1, 50, 59, true));
  set.Set(Lock(2, 20, 29, true));
  EXPECT_EQ(set.Conflict(Lock(3, 0, FileLock::kLastByte, false))->first, 20u);
  EXPECT_EQ(set.Blockers(Lock(3, 0, FileLock::kLastByte, false)).size(), 2u);
}

TEST(LockSetTest, NeighboursOfOneKindBecomeOne) {
  LockSet set;
  set.Set(Lock(1, 0, 4, true));
  set.Set(Lock(1, 10, 14, true));
  set.Set(Lock(1, 5, 9, true));
  ASSERT_EQ(set.All().size(), 1u);
  EXPECT_EQ(set.All()[0], Lock(1, 0, 14, true));
  set.Set(Lock(1, 15, FileLock::kLastByte, false));
  EXPECT_EQ(set.All().size(), 2u);
  set.Clear({1, 1}, 0, FileLock::kLastByte);
  EXPECT_TRUE(set.empty());
}

TEST(LockSetTest, WhatIsMissingOfALockIsWhatItsOwnerHasNot) {
  LockSet set;
  EXPECT_EQ(set.Missing(Lock(1, 0, 9, true)), std::vector{Lock(1, 0, 9, true)});
  set.Set(Lock(2, 0, 9, false));
  set.Set(Lock(1, 2, 3, true));
  set.Set(Lock(1, 6, 7, false));
  EXPECT_EQ(set.Missing(Lock(1, 0, 9, true)),
            (std::vector{Lock(1, 0, 1, true), Lock(1, 4, 9, true)}));
  EXPECT_EQ(set.Missing(Lock(1, 2, 7, false)), std::vector{Lock(1, 4, 5, false)});
  EXPECT_EQ(set.Unlocked(Lock(1, 2, 7, true)), std::vector{Lock(1, 4, 5, true)});
  EXPECT_TRUE(set.Missing(Lock(1, 3, 3, true)).empty());
}

TEST(LockSetTest, ASessionLosesAllAtOnce) {
  LockSet set;
  set.Set(Lock(1, 0, 4, false));
  FileLock other = Lock(1, 0, 4, false);
  other.owner.session = 2;
  set.Set(other);
  EXPECT_TRUE(set.DropSession(1));
  EXPECT_FALSE(set.DropSession(1));
  ASSERT_EQ(set.All().size(), 1u);
  EXPECT_EQ(set.All()[0], other);
}

// Goal: after any calls the set says of every byte what a table of bytes says, in the fewest
// ranges. Method: random locks of three owners on 24 bytes beside such a table; TEST_SEED reruns.
TEST(LockSetTest, AgreesWithATableOfBytes) {
  constexpr uint64_t kBytes = 24;
  Prng prng(weir::testing::TestSeed(5));
  std::array<std::array<char, kBytes>, 3> table{};
  LockSet set;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t owner = prng.Uniform(0, 2);
    const uint64_t first = prng.Uniform(0, kBytes - 1);
    const uint64_t last = prng.Uniform(first, kBytes - 1);
    const uint64_t kind = prng.Uniform(0, 2);
    const FileLock lock = Lock(owner, first, last, kind == 2);
    if (kind == 0) {
      set.Clear(lock.owner, first, last);
    } else if (!set.Conflict(lock).has_value()) {
      set.Set(lock);
    } else {
      continue;
    }
    for (uint64_t byte = first; byte <= last; ++byte) table[owner][byte] = static_cast<char>(kind);
    size_t ranges = 0;
    for (uint64_t who = 0; who < 3; ++who) {
      for (uint64_t byte = 0; byte < kBytes; ++byte) {
        const char held = table[who][byte];
        ranges += held != 0 && (byte == 0 || table[who][byte - 1] != held) ? 1 : 0;
        const uint64_t other = (who + 1) % 3;
        const bool writable = table[who][byte] == 0 && table[(other + 1) % 3][byte] == 0;
        ASSERT_EQ(!set.Conflict(Lock(other, byte, byte, true)).has_value(), writable) << step;
      }
    }
    ASSERT_EQ(set.All().size(), ranges) << step;
  }
}

}  // namespace
}  // namespace weir
