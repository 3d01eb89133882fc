#include "osd/qos/guarantee/htb.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

namespace weir::osd::qos {
namespace {

constexpr uint64_t kAfterAllInFull = uint64_t{1} << 62;  // no sequence number gets there
constexpr int64_t kMostElsewhere = int64_t{1} << 40;     // tokens; times the parts it still fits
constexpr int64_t kDebtCaps = 6;  // that a class may owe here for what it got elsewhere

}  // namespace

template <typename Leaf>
void Htb::SetLeaf(Leaf* leaf, uint64_t rate, int64_t largest, TimePoint now) {
  const int64_t cap = BucketCap(rate, largest);
  if (rate == 0) {
    leaf->reset();
  } else if (*leaf) {
    (*leaf)->SetRate(rate, cap, now);
  } else if constexpr (std::is_same_v<Leaf, std::optional<TokenBucket>>) {
    leaf->emplace(rate, cap, now);
  } else {
    *leaf = std::make_unique<TokenBucket>(rate, cap, now);
  }
}

void Htb::PromiseChanged(ClassQueue* queue, TimePoint now) {
  if (queue->leaf) leaf_caps_ -= queue->leaf->cap();
  SetLeaf(&queue->leaf, queue->promised, queue->largest_tokens, now);
  SetLeaf(&queue->iops_leaf, queue->promised_iops * kIopsParts * kTokenBytes, kIopsParts, now);
  SetLeaf(&queue->bound_leaf, queue->bound_iops * kIopsParts * kTokenBytes, kIopsParts, now);
  if (queue->leaf) leaf_caps_ += queue->leaf->cap();
  // What a request tells of was got since the one before: all that flowed in meanwhile pays for it.
  const int64_t spill = queue->promise_total ? kMostElsewhere : 0;
  if (queue->leaf) queue->leaf->KeepSpill(spill);
  if (queue->iops_leaf) queue->iops_leaf->KeepSpill(spill);
}

void Htb::Remove(ClassQueue* queue) {
  Withdraw(queue);
  if (queue->leaf) leaf_caps_ -= queue->leaf->cap();
  queue->leaf.reset();
  queue->iops_leaf.reset();
  queue->bound_leaf.reset();
}

int64_t Htb::PartsOf(const ClassQueue& queue, int64_t tokens) {
  if (queue.unit_tokens <= 0 || tokens <= queue.unit_tokens) return kIopsParts;
  return (tokens * kIopsParts + queue.unit_tokens - 1) / queue.unit_tokens;
}

TimePoint Htb::PromiseCoversAt(ClassQueue* queue, int64_t tokens, TimePoint now) {
  if (!queue->leaf && !queue->iops_leaf) return TimePoint::Max();
  TimePoint due{0};
  if (queue->leaf) {
    queue->leaf->Refill(now);
    due = queue->leaf->CoversAt(tokens);
  }
  if (queue->iops_leaf) {
    queue->iops_leaf->Refill(now);
    const int64_t parts = queue->leaf ? kIopsParts : PartsOf(*queue, tokens);
    due = std::max(due, queue->iops_leaf->CoversAt(parts));
  }
  return due;
}

TimePoint Htb::BoundCoversAt(ClassQueue* queue, int64_t tokens, TimePoint now) {
  if (!queue->bound_leaf) return TimePoint::Max();
  queue->bound_leaf->Refill(now);
  return queue->bound_leaf->CoversAt(PartsOf(*queue, tokens));
}

// Measured admission promises more than the disk has, counting on not all asking at once. When they
// do, what was promised whatever is measured goes first (algorithms §7 rule 3).
bool Htb::OwedInFull(const ClassQueue& queue, bool promise_covers, bool bound_covers) {
  if (queue.transactions) return true;
  const auto& reservation = queue.spec.reservation;
  const bool measured = reservation && reservation->admission == AdmissionKind::kMeasured;
  return (promise_covers && !measured) ||
         (bound_covers && queue.spec.admission == AdmissionKind::kAdditive);
}

void Htb::Offer(ClassQueue* queue, TimePoint now) {
  if (!queue->leaf && !queue->iops_leaf && !queue->bound_leaf) {
    Withdraw(queue);
    return;
  }
  const Request& head = *queue->requests.front();
  const int64_t tokens = TokensOf(head.bytes);
  const TimePoint promise = PromiseCoversAt(queue, tokens, now);
  const TimePoint bound = BoundCoversAt(queue, tokens, now);
  TimePoint due = std::min(promise, bound);
  if (queue->transactions) due = std::min(due, queue->transactions->DueAt(now));
  if (due <= now) {
    waiting_.Remove(queue);
    const bool in_full = OwedInFull(*queue, promise <= now, bound <= now);
    ready_.Put(queue, head.sequence + (in_full ? 0 : kAfterAllInFull), head.sequence);
  } else {
    ready_.Remove(queue);
    waiting_.Put(queue, due, head.sequence);
  }
}

void Htb::Withdraw(ClassQueue* queue) {
  waiting_.Remove(queue);
  ready_.Remove(queue);
}

void Htb::ServedElsewhere(ClassQueue* queue, int64_t tokens, TimePoint now) {
  if (queue->leaf) {
    queue->leaf->Refill(now);
    queue->leaf->TakeElsewhere(-kDebtCaps * queue->leaf->cap(), tokens);
  }
  if (queue->iops_leaf) {
    // How many requests that was, each taken to be as large as the one that tells of them.
    const int64_t each = TokensOf(queue->requests.front()->bytes);
    const int64_t parts = queue->leaf ? kIopsParts : PartsOf(*queue, each);
    queue->iops_leaf->Refill(now);
    const int64_t bounded = std::min(tokens, kMostElsewhere);
    queue->iops_leaf->TakeElsewhere(-kDebtCaps * queue->iops_leaf->cap(), bounded * parts / each);
  }
}

ClassQueue* Htb::Pick(TimePoint now) {
  while (!waiting_.empty() && waiting_.TopKey() <= now) {
    ClassQueue* queue = waiting_.Top();
    waiting_.Remove(queue);
    Offer(queue, now);
  }
  return ready_.empty() ? nullptr : ready_.Top();
}

void Htb::Take(ClassQueue* queue, int64_t tokens, TimePoint now) {
  const bool promise_covers = PromiseCoversAt(queue, tokens, now) <= now;
  const bool bound_pays = !promise_covers && BoundCoversAt(queue, tokens, now) <= now;
  // Who does not pay is drained too, but owes nothing for it.
  const auto take = [](TokenBucket* leaf, int64_t amount, bool pays) {
    pays ? leaf->Take(amount) : leaf->TakeDownTo(0, amount);
  };
  const int64_t parts = PartsOf(*queue, tokens);
  if (queue->leaf) take(&*queue->leaf, tokens, !bound_pays);
  if (queue->iops_leaf) take(&*queue->iops_leaf, queue->leaf ? kIopsParts : parts, !bound_pays);
  if (queue->bound_leaf) {
    queue->bound_leaf->Refill(now);
    take(&*queue->bound_leaf, parts, bound_pays);
  }
  if (queue->transactions) queue->transactions->Take(*queue->requests.front(), now);
}

TimePoint Htb::WakeAt() const {
  return waiting_.empty() ? TimePoint::Max() : waiting_.TopKey();
}

}  // namespace weir::osd::qos
