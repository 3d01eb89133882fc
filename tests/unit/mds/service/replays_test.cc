// Goal: what is asked while mounts still have something to repeat happens behind all of that, in
// the order in which it came, and nobody waits for a mount that does not come back.
#include "mds/service/replays.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "common/testing/manual_clock.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kAnna = 1;
constexpr uint64_t kBert = 2;
constexpr uint64_t kCarl = 3;  // is not awaited
constexpr Duration kPatience = 15s;

class ReplaysTest : public ::testing::Test {
 protected:
  // Whether it has to wait; notes when it is done, and a minus behind it if its session is given
  // up.
  bool Ask(uint64_t session, char what) {
    Replays::Work work = [this, what](bool given_up) {
      done_ += what;
      if (given_up) done_ += '-';
    };
    return replays_.Park(session, &work);
  }
  std::vector<uint64_t> Overdue(Duration silence_of_anna, Duration silence_of_bert) {
    return replays_.TakeOverdue(
        [=](uint64_t session) { return session == kAnna ? silence_of_anna : silence_of_bert; });
  }
  testing::ManualClock clock_;
  std::vector<uint64_t> recorded_;  // as given up
  Replays replays_{clock_, kPatience, [this](uint64_t session) { recorded_.push_back(session); }};
  std::string done_;
};

TEST_F(ReplaysTest, NobodyWaitsWhereNothingIsToBeRepeated) {
  EXPECT_FALSE(replays_.Any());
  Replays::Work work = [this](bool) { done_ += 'a'; };
  EXPECT_FALSE(replays_.Park(kCarl, &work));
  work(false);
  EXPECT_EQ(done_, "a") << "it was not taken";
  replays_.Await({}, {});
  EXPECT_FALSE(replays_.Any());
}

TEST_F(ReplaysTest, AllWaitForTheLastOfThemAndGoOnInTheOrderInWhichTheyCame) {
  replays_.Await({kAnna, kBert}, {});
  EXPECT_TRUE(replays_.Any());
  EXPECT_TRUE(replays_.Awaits(kAnna) && replays_.Awaits(kBert));
  EXPECT_FALSE(replays_.Awaits(kCarl));
  EXPECT_TRUE(Ask(kCarl, 'a'));
  EXPECT_TRUE(Ask(kAnna, 'b'));
  replays_.Done(kAnna);
  EXPECT_FALSE(replays_.Awaits(kAnna));
  EXPECT_TRUE(Ask(kAnna, 'c'));
  EXPECT_TRUE(Ask(kCarl, 'd'));
  EXPECT_EQ(done_, "");
  replays_.Done(kBert);
  EXPECT_EQ(done_, "abcd");
  EXPECT_FALSE(replays_.Any());
  EXPECT_FALSE(Ask(kCarl, 'e'));
}

TEST_F(ReplaysTest, WhatIsSaidTwiceCountsOnce) {
  replays_.Await({kAnna, kAnna, kBert}, {});
  EXPECT_TRUE(Ask(kCarl, 'a'));
  replays_.Done(kAnna);
  replays_.Done(kAnna);
  replays_.Done(kCarl);
  EXPECT_EQ(done_, "") << "one is missing";
  replays_.Done(kBert);
  replays_.Done(kBert);
  EXPECT_EQ(done_, "a");
}

TEST_F(ReplaysTest, WhatComesWhileTheyGoOnGoesBehindThem) {
  replays_.Await({kAnna}, {});
  Replays::Work first = [this](bool) {
    done_ += 'a';
    EXPECT_TRUE(replays_.Any());
    EXPECT_TRUE(Ask(kCarl, 'c'));
    replays_.Done(kBert);  // as one that ends meanwhile
    EXPECT_EQ(done_, "a");
  };
  EXPECT_TRUE(replays_.Park(kCarl, &first));
  EXPECT_TRUE(Ask(kCarl, 'b'));
  replays_.Done(kAnna);
  EXPECT_EQ(done_, "abc");
  EXPECT_FALSE(replays_.Any());
}

TEST_F(ReplaysTest, WhoSaysGoodbyeWantsNothingAnyMore) {
  replays_.Await({kAnna, kBert}, {});
  EXPECT_TRUE(Ask(kBert, 'a'));
  EXPECT_TRUE(Ask(kAnna, 'b'));
  EXPECT_TRUE(Ask(kCarl, 'c'));
  EXPECT_TRUE(Ask(kBert, 'd'));
  replays_.Drop(kBert);
  EXPECT_FALSE(replays_.Awaits(kBert));
  replays_.Done(kAnna);
  EXPECT_EQ(done_, "bc");
}

TEST_F(ReplaysTest, WhoDoesNotComeBackIsGivenUpOnce) {
  replays_.Await({kAnna, kBert}, {});
  EXPECT_TRUE(Ask(kCarl, 'a'));
  clock_.Advance(kPatience - 1ms);
  EXPECT_TRUE(Overdue(1h, 1h).empty()) << "there is time yet";
  clock_.Advance(1ms);
  EXPECT_EQ(Overdue(1h, 1s), std::vector<uint64_t>{kAnna});
  EXPECT_FALSE(replays_.Awaits(kAnna)) << "too late for it";
  EXPECT_EQ(done_, "") << "the other one is still at it";
  EXPECT_TRUE(Overdue(1h, kPatience).empty());
  EXPECT_EQ(Overdue(1h, kPatience + 1ms), std::vector<uint64_t>{kBert});
  EXPECT_EQ(done_, "a");
  EXPECT_TRUE(Overdue(1h, 1h).empty());
  EXPECT_EQ(recorded_, (std::vector<uint64_t>{kAnna, kBert}));
}

TEST_F(ReplaysTest, WhoWasGivenUpInALifeBeforeHasLostUntilItKnows) {
  replays_.Await({kAnna}, {kBert});
  EXPECT_FALSE(replays_.Awaits(kBert));
  EXPECT_TRUE(replays_.HasLost(kBert));
  replays_.Done(kBert);
  EXPECT_FALSE(replays_.HasLost(kBert));
  EXPECT_TRUE(recorded_.empty());
}

// The accident: what it asked for behind that was carried out without it.
TEST_F(ReplaysTest, WhatWhoIsGivenUpHadAskedForKnowsThat) {
  replays_.Await({kAnna, kBert}, {});
  EXPECT_TRUE(Ask(kAnna, 'a'));
  EXPECT_TRUE(Ask(kBert, 'b'));
  EXPECT_TRUE(Ask(kCarl, 'c'));
  EXPECT_FALSE(replays_.HasLost(kAnna));
  replays_.GiveUp(kAnna);
  EXPECT_TRUE(replays_.HasLost(kAnna)) << "what it asks again is the same";
  replays_.Done(kAnna);
  EXPECT_FALSE(replays_.HasLost(kAnna)) << "it knows";
  EXPECT_TRUE(Ask(kAnna, 'd'));
  replays_.GiveUp(kCarl);
  EXPECT_FALSE(replays_.HasLost(kCarl)) << "it had nothing to lose";
  clock_.Advance(kPatience);
  EXPECT_EQ(Overdue(1h, 1h), std::vector<uint64_t>{kBert});
  EXPECT_EQ(done_, "a-b-cd");
}

// It was sent again, or was on its way between the question and the give-up.
TEST_F(ReplaysTest, WhatIsParkedForWhoHasBeenGivenUpKnowsThatToo) {
  replays_.Await({kAnna, kBert}, {});
  replays_.GiveUp(kAnna);
  EXPECT_TRUE(Ask(kAnna, 'a'));
  EXPECT_TRUE(Ask(kBert, 'b'));
  replays_.Done(kBert);
  EXPECT_EQ(done_, "a-b");
}

// Every request asks whether its session has lost something. Method: another thread asks while the
// lock is held, as it is where silence is asked for.
TEST_F(ReplaysTest, WhetherSomethingIsLostIsKnownWithoutTheLock) {
  replays_.Await({kAnna, kBert}, {});
  replays_.GiveUp(kAnna);
  clock_.Advance(kPatience);
  std::future<bool> lost;
  bool at_once = false;
  replays_.TakeOverdue([&](uint64_t) {
    lost = std::async(std::launch::async, [&] { return replays_.HasLost(kAnna); });
    at_once = lost.wait_for(10s) == std::future_status::ready;
    return Duration::zero();
  });
  EXPECT_TRUE(at_once);
  EXPECT_TRUE(lost.get());
  replays_.Drop(kAnna);
  EXPECT_FALSE(replays_.HasLost(kAnna)) << "it has said goodbye";
}

TEST_F(ReplaysTest, WhatWhoHasRepeatedAllHadAskedForIsDone) {
  replays_.Await({kAnna, kBert}, {});
  EXPECT_TRUE(Ask(kAnna, 'a'));
  replays_.Done(kAnna);
  replays_.GiveUp(kAnna);  // later its session ends
  replays_.Done(kBert);
  EXPECT_EQ(done_, "a");
}

// As the last of them has come when the time is up: nobody waits, nobody is evicted.
TEST_F(ReplaysTest, NobodyIsOverdueWhenAllHaveCome) {
  replays_.Await({kAnna, kBert}, {});
  replays_.Done(kBert);
  replays_.Done(kAnna);
  clock_.Advance(1h);
  EXPECT_TRUE(Overdue(1h, 1h).empty());
}

}  // namespace
}  // namespace weir::mds
