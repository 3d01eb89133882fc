#include "common/net/session_memory.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::net {
namespace {

using Seen = SessionMemory::Seen;

TEST(SessionMemoryTest, ADuplicateWaitsOrGetsTheFirstAnswer) {
  SessionMemory memory(10);
  const Message* answer = nullptr;
  EXPECT_EQ(memory.Arrive(1, 5, false, &answer), Seen::kNew);
  EXPECT_EQ(memory.Arrive(1, 5, false, &answer), Seen::kInProgress);
  EXPECT_EQ(memory.Arrive(1, 6, false, &answer), Seen::kInProgress);
  EXPECT_EQ(memory.Finish(1, {"one", {}}), (std::vector<PeerId>{5, 6}));
  EXPECT_EQ(memory.Arrive(1, 7, false, &answer), Seen::kAnswered);
  EXPECT_EQ(answer->header, "one");
}

TEST(SessionMemoryTest, AnswersToIdempotentRequestsAreNotKept) {
  SessionMemory memory(10);
  const Message* answer = nullptr;
  EXPECT_EQ(memory.Arrive(1, 5, true, &answer), Seen::kNew);
  EXPECT_EQ(memory.Arrive(1, 6, true, &answer), Seen::kInProgress);
  (void)memory.Finish(1, {"one", {}});
  EXPECT_EQ(memory.answers_kept(), 0u);
  EXPECT_EQ(memory.Arrive(1, 5, true, &answer), Seen::kNew);
}

TEST(SessionMemoryTest, ARetractedRequestNeverWas) {
  SessionMemory memory(10);
  const Message* answer = nullptr;
  EXPECT_EQ(memory.Arrive(1, 5, false, &answer), Seen::kNew);
  memory.Retract(1);
  EXPECT_FALSE(memory.HasInProgress());
  EXPECT_EQ(memory.Arrive(1, 5, false, &answer), Seen::kNew);
}

TEST(SessionMemoryTest, NothingStaysOfWhatIsAcknowledgedWhileAnOldRequestIsUnderWay) {
  SessionMemory memory(10);
  const Message* answer = nullptr;
  EXPECT_EQ(memory.Arrive(1, 1, false, &answer), Seen::kNew);
  for (uint64_t id = 2; id < 1000; ++id) {
    EXPECT_EQ(memory.Arrive(id, 1, false, &answer), Seen::kNew);
    (void)memory.Finish(id, {"x", {}});
    memory.Acknowledge(1, {id});
    ASSERT_LE(memory.places_kept(), 1u);
  }
}

TEST(SessionMemoryTest, WhatIsForgottenIsNeverNewAgain) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const size_t most = prng.Uniform(1, 20);
    SessionMemory memory(most);
    std::set<uint64_t> arrived, in_progress;
    uint64_t acked_below = 0;
    for (int step = 0; step < 300; ++step) {
      const uint64_t id = prng.Uniform(1, 100);
      const Message* answer = nullptr;
      switch (prng.Uniform(0, 2)) {
        case 0: {
          const Seen seen = memory.Arrive(id, 1, false, &answer);
          ASSERT_EQ(seen == Seen::kNew, id >= acked_below && !arrived.contains(id)) << id;
          if (seen == Seen::kNew) {
            arrived.insert(id);
            in_progress.insert(id);
          }
          break;
        }
        case 1:
          if (in_progress.erase(id) != 0) (void)memory.Finish(id, {"x", {}});
          ASSERT_LE(memory.answers_kept(), most);
          break;
        default:
          if (prng.Chance(0.1)) acked_below = std::max(acked_below, prng.Uniform(0, id));
          memory.Acknowledge(acked_below, {id, id + 1});
      }
    }
    memory.Acknowledge(1000, {});
    EXPECT_EQ(memory.answers_kept(), 0u);
  }
}

}  // namespace
}  // namespace weir::net
