// StallWatch: tells an IoMeter when RocksDB's writers wait for a flush or a compaction, or soon
// will: then background I/O must not queue behind the foreground, which queues behind it.
//
//   urgent = RocksDB slows down or stops its writers, or two full write buffers are not flushed
//   yet,
//            or a writer waits for room (RoomWanted)
//
// Which buffers a flush has taken shows by sequence numbers when it is done. That it has begun is
// told late: buffers that were filled meanwhile are not in it.
//
// Threads: any.
#pragma once

#include <rocksdb/listener.h>

#include <memory>
#include <mutex>
#include <vector>

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
  void OnMemTableSealed(const rocksdb::MemTableInfo& info) override {
    const std::lock_guard lock(mutex_);
    full_.push_back(info.first_seqno);
    Tell();
  }
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& info) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(full_,
                  [&](rocksdb::SequenceNumber first) { return first <= info.largest_seqno; });
    Tell();
  }

 private:
  void Tell() {
    if (meter_ != nullptr) meter_->SetUrgent(stalls_ > 0 || full_.size() >= 2 || room_wanted_);
  }

  std::mutex mutex_;
  std::shared_ptr<IoMeter> meter_;
  int stalls_ = 0;                             // conditions entered and not left
  std::vector<rocksdb::SequenceNumber> full_;  // write buffers not flushed, by their first
  bool room_wanted_ = false;
};

}  // namespace weir
