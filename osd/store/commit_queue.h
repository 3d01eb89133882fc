// CommitQueue: makes metadata changes durable in groups, in the order they were pushed.
//
// One thread takes what is ready, up to kGroupMax items, and applies it as one synced batch; the
// callbacks of a group are one task of the store's loop, so that the next group is under way
// meanwhile, and a group costs one hop there and one back. A change whose data
// was written to the device first must not become durable before that data: each item carries the
// stamp of its data (BlockDevice::completed_writes after the write), and a group holds only items
// whose data is durable. The synced batch flushes the device, so that in a steady stream one flush
// per group is enough: group n's flush covers the data that came until it began, for group n + 1.
// Only when nothing at the head of the queue is durable does the queue flush for the data alone.
// While every item has patience left, nothing is flushed at all: writers that rates hold back share
// flushes, which a disk serves one by one while readers wait behind them. (Writing one group while
// the one before is flushed was slower: one more hop for each of more and smaller groups.)
//
// Requires: a durable Apply of `kv` flushes `device` (rocks_kv_store.h promises it).
// Threads: any. Callbacks run on the loop, in order; without one, on the queue's thread.
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

#include "common/base/time.h"
#include "common/disk/block_device.h"
#include "common/kv/kv_store.h"
#include "common/reactor/loop.h"

namespace weir::osd {

class CommitQueue {
 public:
  static constexpr size_t kGroupMax = 128;

  struct Item {
    WriteBatch batch;
    uint64_t data_stamp = 0;  // of the device; 0: no data outside the batch
    Duration patience{0};     // how long the item may wait for company
    std::function<void(const Status&)> done;
    TimePoint commit_by{};  // the queue's own
  };

  // `loop` runs the callbacks; null: the queue's thread does. `wake`: instead of the thread the
  // owner is told that there is something for Work; under the caller's locks. Empty: a thread.
  CommitQueue(KvStore& kv, BlockDevice& device, Loop* loop = nullptr,
              std::function<void()> wake = nullptr);
  ~CommitQueue();

  void Push(Item item);
  // Without a thread: commits a group, whatever patience its items have, and runs its callbacks.
  // False: there was nothing.
  bool Work();
  // Commits everything pushed, then ends the thread. No Push after it. A loop may still have
  // callbacks to run.
  void Stop();

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] uint64_t commits() const { return commits_; }
  [[nodiscard]] uint64_t committed_items() const { return committed_items_; }
  // Called on the commit thread after each group; set before the first Push.
  std::function<void()> after_group;

 private:
  using Group = std::vector<Item>;
  bool CommitSome();  // false: nothing, and with a thread: nothing will come
  void Deliver(Group group, Status status);
  bool TakeDurable(Group* group);  // false: stopped and empty
  Status CommitGroup(Group& group);

  KvStore& kv_;
  BlockDevice& device_;
  Loop* const loop_;  // may be null
  const std::function<void()> wake_;
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> commits_{0}, committed_items_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  TimePoint commit_by_ = TimePoint::Max();  // when somebody in queue_ runs out of patience
  bool stopping_ = false;

  std::thread committer_;
};

}  // namespace weir::osd
