// StallWatch: tells an IoMeter when RocksDB's writers wait for a flush or a compaction, or soon
// will: then background I/O must not queue behind the foreground, which queues behind it.
//
//   urgent = RocksDB slows down or stops its writers, or a full write buffer waits while an earlier
//            one is being flushed, or a writer waits for room (RoomWanted)
//
// Threads: any.
#pragma once

#include <rocksdb/listener.h>

#include <memory>
#include <mutex>

#include "common/disk/io_meter.h"

namespace weir {

class StallWatch final : public rocksdb::EventListener {
 public:
  void SetMeter(std::shared_ptr<IoMeter> meter) {
    const std::lock_guard lock(mutex_);
    meter_ = std::move(meter);
    Tell();
  }

  void RoomWanted(bool wanted) {
    const std::lock_guard lock(mutex_);
    room_wanted_ = wanted;
    Tell();
  }

  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override {
    const std::lock_guard lock(mutex_);
    // Counted, because a writer tells of the stop that it caused only when that is over.
    constexpr auto kNormal = rocksdb::WriteStallCondition::kNormal;
    if (info.condition.cur != kNormal) ++stalls_;
    if (info.condition.prev != kNormal) --stalls_;
    Tell();
  }
  void OnMemTableSealed(const rocksdb::MemTableInfo&) override {
    const std::lock_guard lock(mutex_);
    ++sealed_;
    Tell();
  }
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    const std::lock_guard lock(mutex_);
    flushing_ = true;
    sealed_ = 0;
    Tell();
  }
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    const std::lock_guard lock(mutex_);
    flushing_ = false;
    Tell();
  }

 private:
  void Tell() {
    const bool waits = sealed_ >= 2 || (flushing_ && sealed_ > 0);
    if (meter_ != nullptr) meter_->SetUrgent(stalls_ > 0 || waits || room_wanted_);
  }

  std::mutex mutex_;
  std::shared_ptr<IoMeter> meter_;
  int stalls_ = 0;  // conditions entered and not left
  int sealed_ = 0;  // write buffers that no flush has begun with
  bool flushing_ = false;
  bool room_wanted_ = false;
};

}  // namespace weir
