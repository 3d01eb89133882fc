#include "osd/qos/guarantee/htb.h"

#include <algorithm>

namespace weir::osd::qos {

void Htb::SetLeaf(std::optional<TokenBucket>* leaf, uint64_t rate, int64_t largest, TimePoint now) {
  const int64_t cap = BucketCap(rate, largest);
  if (rate == 0) {
    leaf->reset();
  } else if (*leaf) {
    (*leaf)->SetRate(rate, cap, now);
  } else {
    leaf->emplace(rate, cap, now);
  }
}

void Htb::PromiseChanged(ClassQueue* queue, TimePoint now) {
  if (queue->leaf) leaf_caps_ -= queue->leaf->cap();
  SetLeaf(&queue->leaf, queue->promised, queue->largest_tokens, now);
  SetLeaf(&queue->iops_leaf, queue->promised_iops * kIopsParts * kTokenBytes, kIopsParts, now);
  SetLeaf(&queue->bound_leaf, queue->bound_iops * kIopsParts * kTokenBytes, kIopsParts, now);
  if (queue->leaf) leaf_caps_ += queue->leaf->cap();
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

void Htb::Offer(ClassQueue* queue, TimePoint now) {
  if (!queue->leaf && !queue->iops_leaf && !queue->bound_leaf) {
    Withdraw(queue);
    return;
  }
  const Request& head = *queue->requests.front();
  const int64_t tokens = TokensOf(head.bytes);
  TimePoint due = std::min(PromiseCoversAt(queue, tokens, now), BoundCoversAt(queue, tokens, now));
  if (queue->transactions) due = std::min(due, queue->transactions->DueAt(now));
  if (due <= now) {
    waiting_.Remove(queue);
    ready_.Put(queue, head.sequence, head.sequence);
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
    queue->leaf->TakeDownTo(-2 * queue->leaf->cap(), tokens);
  }
  if (queue->iops_leaf) {
    // How many requests that was, each taken to be as large as the one that tells of them.
    const int64_t each = TokensOf(queue->requests.back()->bytes);
    const int64_t parts = queue->leaf ? kIopsParts : PartsOf(*queue, each);
    queue->iops_leaf->Refill(now);
    queue->iops_leaf->TakeDownTo(-2 * queue->iops_leaf->cap(), tokens * parts / each);
  }
}

ClassQueue* Htb::Pick(TimePoint now) {
  while (!waiting_.empty() && waiting_.Top().key <= now) {
    ClassQueue* queue = waiting_.Top().queue;
    waiting_.Remove(queue);
    const uint64_t sequence = queue->requests.front()->sequence;
    ready_.Put(queue, sequence, sequence);
  }
  return ready_.empty() ? nullptr : ready_.Top().queue;
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
  return waiting_.empty() ? TimePoint::Max() : waiting_.Top().key;
}

}  // namespace weir::osd::qos
