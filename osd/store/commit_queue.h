// CommitQueue: makes metadata changes durable in groups, in the order they were pushed.
//
// One thread takes what is ready, up to kGroupMax items, and applies it as one synced batch;
// another runs the callbacks, so that the next group is under way meanwhile. A change whose data
// was written to the device first must not become durable before that data: each item carries the
// stamp of its data, and a group holds only items whose data was complete before the last flush of
// the device began. The synced batch is such a flush, so that in a steady stream one flush per
// group is enough: group n's flush covers the data of group n + 1. Only when nothing at the head of
// the queue is covered does the queue flush for the data alone.
//
// Requires: a durable Apply of `kv` flushes `device` (rocks_kv_store.h promises it).
// Threads: any. Callbacks run on the queue's second thread, in order.
// Errors: after a failed batch or flush nothing is known about what is durable: that group and
// every
//         later item fail, until the store is opened again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "common/disk/block_device.h"
#include "common/kv/kv_store.h"

namespace weir::osd {

class CommitQueue {
 public:
  static constexpr size_t kGroupMax = 128;

  struct Item {
    WriteBatch batch;
    uint64_t data_stamp = 0;  // of DataLanded; 0: no data outside the batch
    std::function<void(const Status&)> done;
  };

  CommitQueue(KvStore& kv, BlockDevice& device);
  ~CommitQueue();

  // Called when the data of a change is written: a stamp for its item.
  uint64_t DataLanded() { return ++landed_; }
  void Push(Item item);
  // Runs everything pushed, then ends the threads. No Push after it.
  void Stop();

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] uint64_t commits() const { return commits_; }
  [[nodiscard]] uint64_t committed_items() const { return committed_items_; }
  // Called on the commit thread after each group; set before the first Push.
  std::function<void()> after_group;

 private:
  using Group = std::vector<Item>;
  struct Finished {
    Group group;
    Status status;
  };
  void CommitLoop();
  void FinishLoop();
  bool TakeCovered(Group* group);  // false: stopped and empty
  Status CommitGroup(Group& group);
  Status FlushData();

  KvStore& kv_;
  BlockDevice& device_;
  std::atomic<uint64_t> landed_{0};
  uint64_t covered_ = 0;  // stamps up to this one are durable; commit thread only
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> commits_{0}, committed_items_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool stopping_ = false;

  std::mutex finished_mutex_;
  std::condition_variable finished_changed_;
  std::vector<Finished> finished_;
  bool finish_stopping_ = false;

  std::thread committer_, finisher_;
};

}  // namespace weir::osd
