// YieldBatches: leases that are given back one by one go to the MDS in few messages.
//
// A few YIELDs are on their way at a time, each at once: whoever waits for a lease does not wait
// for others to be given back. What comes meanwhile joins the next one of the same recall. So the
// MDS can take back a thousand leases at the price of some dozens.
//
// Order:   as they came. Threads: any; `send` and what is done run without the lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace weir::client {

class YieldBatches {
 public:
  static constexpr size_t kAtOnce = 4;
  static constexpr size_t kInodesMost = 256;  // of a message that several share

  using Done = std::function<void()>;
  using Send = std::function<void(uint64_t epoch, uint64_t seq, const std::vector<InodeId>&, Done)>;
  explicit YieldBatches(Send send) : send_(std::move(send)) {}

  // `done` when that has been answered, however.
  void Yield(uint64_t epoch, uint64_t seq, const std::vector<InodeId>& inodes, Done done) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty() || !waiting_.back()->Takes(epoch, seq, inodes.size())) {
        waiting_.push_back(std::make_shared<Batch>(Batch{epoch, seq, {}, {}}));
      }
      Batch& last = *waiting_.back();
      last.inodes.insert(last.inodes.end(), inodes.begin(), inodes.end());
      last.done.push_back(std::move(done));
      if (under_way_ == kAtOnce) return;
      ++under_way_;
    }
    SendNext();
  }

 private:
  struct Batch {
    uint64_t epoch;
    uint64_t seq;
    std::vector<InodeId> inodes;
    std::vector<Done> done;
    [[nodiscard]] bool Takes(uint64_t its_epoch, uint64_t its_seq, size_t more) const {
      return epoch == its_epoch && seq == its_seq && inodes.size() + more <= kInodesMost;
    }
  };
  // Requires: it is counted as under way.
  void SendNext() {
    std::shared_ptr<Batch> next;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        --under_way_;
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    send_(next->epoch, next->seq, next->inodes, [this, next] {
      for (const Done& done : next->done) done();
      SendNext();
    });
  }

  const Send send_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Batch>> waiting_;
  size_t under_way_ = 0;
};

}  // namespace weir::client
