#include "osd/qos/guarantee/htb.h"

namespace weir::osd::qos {

void Htb::PromiseChanged(ClassQueue* queue, TimePoint now) {
  if (queue->leaf) leaf_caps_ -= queue->leaf->cap();
  if (queue->promised == 0) {
    queue->leaf.reset();
    return;
  }
  const int64_t cap = BucketCap(queue->promised, queue->largest_tokens);
  if (queue->leaf) {
    queue->leaf->SetRate(queue->promised, cap, now);
  } else {
    queue->leaf.emplace(queue->promised, cap, now);
  }
  leaf_caps_ += cap;
}

void Htb::Remove(ClassQueue* queue) {
  Withdraw(queue);
  if (queue->leaf) leaf_caps_ -= queue->leaf->cap();
  queue->leaf.reset();
}

void Htb::Offer(ClassQueue* queue, TimePoint now) {
  if (!queue->leaf) {
    Withdraw(queue);
    return;
  }
  const Request& head = *queue->requests.front();
  queue->leaf->Refill(now);
  const TimePoint due = queue->leaf->CoversAt(TokensOf(head.bytes));
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
  if (!queue->leaf) return;
  queue->leaf->Refill(now);
  queue->leaf->TakeDownTo(-2 * queue->leaf->cap(), tokens);
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
  queue->leaf->Refill(now);
  queue->leaf->Take(tokens);
}

TimePoint Htb::WakeAt() const {
  return waiting_.empty() ? TimePoint::Max() : waiting_.Top().key;
}

}  // namespace weir::osd::qos
