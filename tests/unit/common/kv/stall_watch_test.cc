#include "common/kv/stall_watch.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using rocksdb::WriteStallCondition;

class UrgencyMeter final : public IoMeter {
 public:
  void* Begin(const Io&) override { return nullptr; }
  void End(void*) override {}
  void SetUrgent(bool is) override { urgent = is; }
  bool urgent = false;
};

class StallWatchTest : public ::testing::Test {
 protected:
  StallWatchTest() { watch_.SetMeter(meter_); }
  void Change(WriteStallCondition from, WriteStallCondition to) {
    rocksdb::WriteStallInfo info;
    info.condition.prev = from;
    info.condition.cur = to;
    watch_.OnStallConditionsChanged(info);
  }
  std::shared_ptr<UrgencyMeter> meter_ = std::make_shared<UrgencyMeter>();
  StallWatch watch_;
};

TEST_F(StallWatchTest, AStallIsUrgentWhileItLasts) {
  Change(WriteStallCondition::kNormal, WriteStallCondition::kDelayed);
  EXPECT_TRUE(meter_->urgent);
  Change(WriteStallCondition::kDelayed, WriteStallCondition::kStopped);
  EXPECT_TRUE(meter_->urgent);
  Change(WriteStallCondition::kStopped, WriteStallCondition::kNormal);
  EXPECT_FALSE(meter_->urgent);
}

// The writer that caused a stop tells of it when it goes on, which is after the end was told.
TEST_F(StallWatchTest, AStallThatIsToldOfAfterItsEndDoesNotStay) {
  Change(WriteStallCondition::kStopped, WriteStallCondition::kNormal);
  Change(WriteStallCondition::kNormal, WriteStallCondition::kStopped);
  EXPECT_FALSE(meter_->urgent);
  Change(WriteStallCondition::kNormal, WriteStallCondition::kStopped);
  EXPECT_TRUE(meter_->urgent);
}

TEST_F(StallWatchTest, TwoFullBuffersAreUrgentOneIsNot) {
  watch_.OnMemTableSealed({});
  EXPECT_FALSE(meter_->urgent);
  watch_.OnFlushBegin(nullptr, {});
  watch_.OnMemTableSealed({});
  EXPECT_TRUE(meter_->urgent);
  watch_.OnFlushCompleted(nullptr, {});
  EXPECT_FALSE(meter_->urgent);
  watch_.OnMemTableSealed({});
  EXPECT_TRUE(meter_->urgent);  // two wait and nobody flushes
}

}  // namespace
}  // namespace weir
