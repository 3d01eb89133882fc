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
  void Seal(rocksdb::SequenceNumber first) {
    rocksdb::MemTableInfo info{};
    info.first_seqno = first;
    watch_.OnMemTableSealed(info);
  }
  void Flushed(rocksdb::SequenceNumber largest) {
    rocksdb::FlushJobInfo info{};
    info.largest_seqno = largest;
    watch_.OnFlushCompleted(nullptr, info);
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
  Seal(1);
  EXPECT_FALSE(meter_->urgent);
  Seal(100);
  EXPECT_TRUE(meter_->urgent);
  Flushed(99);
  EXPECT_FALSE(meter_->urgent);
  Seal(200);
  EXPECT_TRUE(meter_->urgent);
  Flushed(250);
  EXPECT_FALSE(meter_->urgent);
}

// A flush tells of its beginning when it has chosen its buffers, and others may be full by then.
TEST_F(StallWatchTest, BuffersThatAreFullBeforeAFlushIsToldOfAreNotForgotten) {
  Seal(1);
  Seal(100);
  watch_.OnFlushBegin(nullptr, {});
  EXPECT_TRUE(meter_->urgent);
}

}  // namespace
}  // namespace weir
