#include "client/vfs/eviction_waits.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{};

class EvictionWaitsTest : public ::testing::Test {
 protected:
  void Await(uint64_t epoch, TimePoint until = TimePoint::Max()) {
    waits.Await(epoch, until, [this](const Status& status) { ended.push_back(status.code()); });
  }
  EvictionWaits waits;
  std::vector<ErrorCode> ended;
};

TEST_F(EvictionWaitsTest, AnOpenIsAskedForAgainWhenTheEvictionIsKnown) {
  Await(7);
  waits.Tick(kStart);
  waits.Heard(7);  // an earlier one, which the open knew of
  waits.Tick(kStart);
  EXPECT_TRUE(ended.empty());
  waits.Heard(8);
  EXPECT_TRUE(ended.empty());
  waits.Tick(kStart);
  EXPECT_EQ(ended, std::vector{ErrorCode::kOk});
  Await(7);  // heard of before the answer came
  waits.Tick(kStart);
  EXPECT_EQ(ended, (std::vector{ErrorCode::kOk, ErrorCode::kOk}));
}

TEST_F(EvictionWaitsTest, NobodyWaitsForEver) {
  Await(7, kStart + 1s);
  waits.Tick(kStart);
  EXPECT_TRUE(ended.empty());
  waits.Tick(kStart + 1s);
  EXPECT_EQ(ended, std::vector{ErrorCode::kTimedOut});
  Await(7);
  waits.Stop();
  Await(7);
  EXPECT_EQ(ended,
            (std::vector{ErrorCode::kTimedOut, ErrorCode::kCancelled, ErrorCode::kCancelled}));
}

}  // namespace
}  // namespace weir::client
