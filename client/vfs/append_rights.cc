#include "client/vfs/append_rights.h"

#include <utility>

namespace weir::client {

void AppendRights::Use(InodeId inode, Then then) {
  bool ask = false;
  {
    std::lock_guard lock(mutex_);
    Right& right = rights_[inode];
    if (!right.held || right.wanted_back || right.settling) {
      right.waiting.push_back(std::move(then));
      ask = !right.held && !right.asking && !right.settling;
      if (!ask) return;
      right.asking = true;
    } else {
      ++right.users;
    }
  }
  if (ask) return Ask(inode);
  then(Status::Ok());  // NOLINT(bugprone-use-after-move): moved only when asked
}

void AppendRights::Ask(InodeId inode) {
  actions_.ask(inode, [this, inode](const Result<uint64_t>& given) { Answered(inode, given); });
}

void AppendRights::Answered(InodeId inode, const Result<uint64_t>& given) {
  std::vector<Then> waiting;
  {
    std::lock_guard lock(mutex_);
    Right& right = rights_[inode];
    right.asking = false;
    right.held = given.ok();
    right.grant = given.ok() ? *given : 0;
    // One that the MDS does not keep is used by those who wait, and no longer.
    if (right.grant == 0) right.wanted_back = true;
    waiting.swap(right.waiting);
    if (given.ok()) right.users += waiting.size();
    if (!given.ok()) rights_.erase(inode);
  }
  for (const Then& then : waiting) then(given.status());
  SettleIfDue(inode);
}

void AppendRights::Done(InodeId inode) {
  {
    std::lock_guard lock(mutex_);
    --rights_[inode].users;
  }
  SettleIfDue(inode);
}

void AppendRights::Recall(const std::vector<InodeId>& inodes) {
  for (const InodeId inode : inodes) {
    {
      std::lock_guard lock(mutex_);
      const auto found = rights_.find(inode);
      if (found == rights_.end()) continue;  // it is on its way back
      found->second.wanted_back = true;
    }
    SettleIfDue(inode);
  }
}

void AppendRights::Lost() {
  std::vector<InodeId> held;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [inode, right] : rights_) held.push_back(inode);
  }
  Recall(held);
}

void AppendRights::SettleIfDue(InodeId inode) {
  {
    std::lock_guard lock(mutex_);
    const auto found = rights_.find(inode);
    if (found == rights_.end()) return;
    Right& right = found->second;
    if (!right.held || !right.wanted_back || right.settling || right.users > 0) return;
    right.settling = true;
  }
  actions_.settle(inode, [this, inode] { Settled(inode); });
}

void AppendRights::Settled(InodeId inode) {
  uint64_t grant = 0;
  {
    std::lock_guard lock(mutex_);
    grant = rights_[inode].grant;
  }
  // Before anybody may ask for another one: the MDS takes them in this order.
  if (grant != 0) actions_.give_back(inode, grant);
  bool ask = false;
  {
    std::lock_guard lock(mutex_);
    const auto found = rights_.find(inode);
    Right& right = found->second;
    ask = !right.waiting.empty();
    std::vector<Then> waiting = std::move(right.waiting);
    right = {};
    right.waiting = std::move(waiting);
    right.asking = ask;
    if (!ask) rights_.erase(found);
  }
  if (ask) Ask(inode);
}

}  // namespace weir::client
