// StallWatch: tells an IoMeter when RocksDB's writers wait for a flush or a compaction, or soon
// will: then background I/O must not queue behind the foreground, which queues behind it.
//
//   urgent = RocksDB slows down or stops its writers, or a full write buffer waits while an earlier
//            one is being flushed
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
    if (meter_ != nullptr) meter_->SetUrgent(stalled_ || waiting_);
  }

  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override {
    const std::lock_guard lock(mutex_);
    stalled_ = info.condition.cur != rocksdb::WriteStallCondition::kNormal;
    Tell();
  }
  void OnMemTableSealed(const rocksdb::MemTableInfo&) override {
    const std::lock_guard lock(mutex_);
    waiting_ = flushing_;
    Tell();
  }
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    const std::lock_guard lock(mutex_);
    flushing_ = true;
    waiting_ = false;
    Tell();
  }
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    const std::lock_guard lock(mutex_);
    flushing_ = false;
    Tell();
  }

 private:
  void Tell() {
    if (meter_ != nullptr) meter_->SetUrgent(stalled_ || waiting_);
  }

  std::mutex mutex_;
  std::shared_ptr<IoMeter> meter_;
  bool stalled_ = false, flushing_ = false, waiting_ = false;
};

}  // namespace weir
