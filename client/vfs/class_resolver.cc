#include "client/vfs/class_resolver.h"

#include <algorithm>

namespace weir::client {

ClassResolver::ClassResolver(InodeTable& inodes, std::function<std::vector<InodeId>()> open_inodes,
                             Ask ask)
    : inodes_(inodes), open_inodes_(std::move(open_inodes)), ask_(std::move(ask)) {}

void ClassResolver::TagsMoved(uint64_t tag_epoch, uint64_t moment) {
  {
    std::lock_guard lock(mutex_);
    moved_at_ = std::max(moved_at_.load(), moment);  // before the round: whoever misses it is early
    wanted_ = std::max(wanted_, tag_epoch);
    if (running_ || resolved_ >= wanted_) return;
    running_ = true;
  }
  StartRound();
}

void ClassResolver::Heard(Inode& inode, std::optional<ClassId> tag, uint64_t asked) {
  inode.set_tag_class(tag);
  if (asked >= moved_at_) return;
  {
    std::lock_guard lock(mutex_);
    again_.insert(inode.id());
    if (running_) return;
    running_ = true;
  }
  StartRound();
}

void ClassResolver::StartRound() {
  bool all = false;
  {
    std::lock_guard lock(mutex_);
    all = wanted_ > resolved_;
  }
  std::vector<InodeId> open;
  if (all) open = open_inodes_();
  {
    std::lock_guard lock(mutex_);
    // When tags have moved just now the end of this round starts another one.
    round_epoch_ = all ? wanted_ : resolved_;
    for (const InodeId inode : open) again_.erase(inode);
    open.insert(open.end(), again_.begin(), again_.end());
    again_.clear();
    round_ = std::move(open);
    failed_ = false;
  }
  NextBatch(0);
}

void ClassResolver::NextBatch(size_t begin) {
  std::vector<InodeId> batch;
  bool again = false;
  {
    std::lock_guard lock(mutex_);
    if (begin < round_.size()) {
      const size_t end = std::min(begin + kBatch, round_.size());
      batch.assign(round_.begin() + static_cast<ptrdiff_t>(begin),
                   round_.begin() + static_cast<ptrdiff_t>(end));
    } else {
      resolved_ = std::max(resolved_, round_epoch_);
      again = wanted_ > resolved_ || !again_.empty();
      running_ = again;
    }
  }
  if (again) return StartRound();
  if (batch.empty()) return;
  ask_(batch,
       [this, begin, batch](Result<Answer> answer) { OnAnswer(begin, batch, std::move(answer)); });
}

void ClassResolver::OnAnswer(size_t begin, const std::vector<InodeId>& batch,
                             Result<Answer> answer) {
  if (!answer.ok() || answer->classes.size() != batch.size()) {
    std::lock_guard lock(mutex_);
    failed_ = true;  // Tick starts the round again
    running_ = false;
    // Those of which it was a round, and no harm in the others that are not open any more.
    again_.insert(round_.begin(), round_.end());
    return;
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (InodePtr inode = inodes_.Find(batch[i])) inode->set_tag_class(answer->classes[i]);
  }
  NextBatch(begin + batch.size());
}

void ClassResolver::Tick() {
  {
    std::lock_guard lock(mutex_);
    if (!failed_ || running_) return;
    running_ = true;
  }
  StartRound();
}

uint64_t ClassResolver::resolved_epoch() const {
  std::lock_guard lock(mutex_);
  return resolved_;
}

}  // namespace weir::client
