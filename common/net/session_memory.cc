#include "common/net/session_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace weir::net {

SessionMemory::Seen SessionMemory::Arrive(uint64_t id, PeerId peer, bool idempotent,
                                          const Message** answer) {
  const auto it = entries_.find(id);
  if (it != entries_.end()) {
    Entry& entry = it->second;
    if (entry.answered) {
      *answer = &entry.answer;
      return Seen::kAnswered;
    }
    if (std::find(entry.waiting.begin(), entry.waiting.end(), peer) == entry.waiting.end()) {
      entry.waiting.push_back(peer);
    }
    return Seen::kInProgress;
  }
  if (!idempotent) {
    if (id < acked_below_) return Seen::kObsolete;
    if (IsForgotten(id)) return Seen::kForgotten;
  }
  Entry& entry = entries_[id];
  entry.idempotent = idempotent;
  entry.waiting.push_back(peer);
  ++in_progress_;
  return Seen::kNew;
}

std::vector<PeerId> SessionMemory::Retract(uint64_t id) {
  const auto it = entries_.find(id);
  WEIR_CHECK(it != entries_.end() && !it->second.answered, "a request is retracted and answered");
  std::vector<PeerId> waiting = std::move(it->second.waiting);
  entries_.erase(it);
  --in_progress_;
  return waiting;
}

std::vector<PeerId> SessionMemory::Finish(uint64_t id, const Message& answer) {
  const auto it = entries_.find(id);
  WEIR_CHECK(it != entries_.end() && !it->second.answered, "a request is answered twice");
  Entry& entry = it->second;
  std::vector<PeerId> waiting = std::move(entry.waiting);
  --in_progress_;
  if (entry.idempotent || id < acked_below_) {
    entries_.erase(it);
    return waiting;
  }
  entry.answered = true;
  entry.answer = answer;
  ++answers_;
  order_.push_back(id);
  while (answers_ > most_answers_) {
    const auto oldest = entries_.find(order_.front());
    if (oldest != entries_.end()) Forget(oldest);
    order_.pop_front();
  }
  return waiting;
}

void SessionMemory::Acknowledge(uint64_t acked_below, const std::vector<uint64_t>& ids) {
  for (const uint64_t id : ids) {
    const auto it = entries_.find(id);
    if (it != entries_.end() && it->second.answered) Forget(it);
  }
  DropForgottenOrder();
  if (acked_below <= acked_below_) return;
  acked_below_ = acked_below;
  for (auto it = entries_.begin(); it != entries_.end() && it->first < acked_below;) {
    const auto next = std::next(it);
    if (it->second.answered) {
      entries_.erase(it);
      --answers_;
    }
    it = next;
  }
  while (!forgotten_.empty() && forgotten_.begin()->second < acked_below) {
    forgotten_.erase(forgotten_.begin());
  }
  DropForgottenOrder();
}

// Without this a client that acknowledges everything would still let the queue grow, also while one
// old request of it is under way.
void SessionMemory::DropForgottenOrder() {
  while (!order_.empty() && !entries_.contains(order_.front())) order_.pop_front();
}

void SessionMemory::Forget(std::map<uint64_t, Entry>::iterator it) {
  MarkForgotten(it->first);
  entries_.erase(it);
  --answers_;
}

void SessionMemory::MarkForgotten(uint64_t id) {
  auto next = forgotten_.upper_bound(id);
  uint64_t last = id;
  if (next != forgotten_.end() && next->first == id + 1) {
    last = next->second;
    next = forgotten_.erase(next);
  }
  if (next != forgotten_.begin()) {
    const auto before = std::prev(next);
    if (before->second + 1 == id) {
      before->second = last;
      return;
    }
  }
  forgotten_[id] = last;
}

bool SessionMemory::IsForgotten(uint64_t id) const {
  const auto next = forgotten_.upper_bound(id);
  return next != forgotten_.begin() && std::prev(next)->second >= id;
}

}  // namespace weir::net
