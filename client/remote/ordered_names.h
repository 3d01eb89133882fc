// OrderedNames: what the MDS has answered to this mount and may not have made durable yet
// (wire::Ordered).
//
// A crash that takes what was answered takes the file with its name. So OSDs hear of a new file
// only when its creation is durable: else its objects would belong to nobody, or to another file
// that gets the same number.
//
// Orders of one life of the MDS follow those of the lives before it. When one begins anew nothing
// is durable that was not, until what was kept has been repeated and is.
// Threads: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "common/base/ids.h"
#include "common/wire/mds.pb.h"

namespace weir::client {

class OrderedNames {
 public:
  // Before whoever asked hears of the answer that brought it; returns its order here. `made`: the
  // file that it made, or 0.
  uint64_t Heard(const wire::Ordered& said, InodeId made = InodeId()) {
    const std::lock_guard lock(mutex_);
    const uint64_t order = said.order() == 0 ? 0 : base_ + said.order();
    last_ = std::max(last_.load(), order);
    if (!repeating_ && said.durable() >= repeated_) SetDurable(base_ + said.durable());
    if (made != InodeId() && order > durable_) made_[made] = order;
    Noted();
    return order;
  }

  // Another life has begun. What is answered until EndRepeating is what was kept from before.
  void BeginLife() {
    const std::lock_guard lock(mutex_);
    base_ = std::max(last_.load(), durable_.load());  // orders are of all mounts
    last_ = base_;
    repeating_ = true;
    shown_.clear();
    Noted();
  }
  void EndRepeating() {
    const std::lock_guard lock(mutex_);
    repeating_ = false;
    repeated_ = last_ - base_;
    if (repeated_ == 0) SetDurable(base_);
    shown_.clear();
    Noted();
  }
  // Some of it was not durable and is lost, or that is not known: files that it had made or found,
  // and what it had changed of others, directories for one.
  struct Losses {
    std::set<InodeId> files, changed;
  };
  void Lost(const Losses& losses = {}) {
    const std::lock_guard lock(mutex_);
    SetDurable(last_);
    losses_.files.insert(losses.files.begin(), losses.files.end());
    losses_.changed.insert(losses.changed.begin(), losses.changed.end());
    for (const InodeId shown : shown_) losses_.files.erase(shown);
    Noted();
    lost_ = untold_loss_ = true;
  }
  // Whether a file may count as lost, now or soon, until the MDS of this life shows it.
  [[nodiscard]] bool doubts() const { return doubts_; }
  // It has, asked in this life. It was on the medium before that, then: no other file gets the
  // number.
  void Shown(InodeId file) {
    const std::lock_guard lock(mutex_);
    if (repeating_) shown_.insert(file);
    losses_.files.erase(file);
    Noted();
  }
  // Whether who wants that inode on the medium is to hear of it: of a file that is lost each, of
  // changes of one once, and else the first who comes, as nobody else was told.
  bool TakeLoss(InodeId inode) {
    if (!lost_) return false;
    const std::lock_guard lock(mutex_);
    const bool first = untold_loss_.exchange(false);
    const bool changed = losses_.changed.erase(inode) > 0;
    return first || changed || losses_.files.contains(inode);
  }
  // A file that had been made and is not there, as far as is known.
  [[nodiscard]] bool IsLost(InodeId inode) const {
    if (!lost_) return false;
    const std::lock_guard lock(mutex_);
    return losses_.files.contains(inode);
  }
  // Whether it ever has.
  [[nodiscard]] bool lost() const { return lost_; }

  // Of the last answer: what was asked before is durable when this is.
  [[nodiscard]] uint64_t last() const { return last_; }
  [[nodiscard]] uint64_t durable() const { return durable_; }
  [[nodiscard]] bool IsDurable(uint64_t order) const { return order <= durable_; }
  // OSDs are to hear nothing of it yet, or, as it is lost, at all.
  [[nodiscard]] bool IsNew(InodeId inode) const {
    if (!any_new_) return false;
    const std::lock_guard lock(mutex_);
    return made_.contains(inode) || losses_.files.contains(inode);
  }

 private:
  void SetDurable(uint64_t order) {
    if (order <= durable_) return;
    durable_ = order;
    std::erase_if(made_, [&](const auto& made) { return made.second <= order; });
    Noted();
  }
  void Noted() {
    any_new_ = !made_.empty() || !losses_.files.empty();
    doubts_ = repeating_ || !losses_.files.empty();
  }

  mutable std::mutex mutex_;
  std::atomic<uint64_t> last_{0};
  std::atomic<uint64_t> durable_{0};
  std::atomic<bool> any_new_{false};
  std::atomic<bool> lost_{false}, untold_loss_{false}, doubts_{false};
  std::map<InodeId, uint64_t> made_;  // by the order of their creation
  Losses losses_;                     // of which files stay until they are shown
  std::set<InodeId> shown_;           // while that is repeated
  uint64_t base_ = 0;                 // below the orders of this life
  bool repeating_ = false;
  uint64_t repeated_ = 0;  // orders of this life that were
};

}  // namespace weir::client
