// Fcfs: the surplus of ODIS (AQuA §5.2): whoever's head arrived first borrows first.
#pragma once

#include "osd/qos/class_heap.h"
#include "osd/qos/surplus/surplus.h"

namespace weir::osd::qos {

class Fcfs final : public Surplus {
 public:
  void Offer(ClassQueue* queue) override {
    const uint64_t sequence = queue->requests.front()->sequence;
    by_arrival_.Put(queue, sequence, sequence);
  }
  void OfferAgain(ClassQueue* queue) override { Offer(queue); }
  void Withdraw(ClassQueue* queue) override { by_arrival_.Remove(queue); }
  ClassQueue* Pick() override { return by_arrival_.empty() ? nullptr : by_arrival_.Top(); }

 private:
  ClassHeap<uint64_t, HeapSlot::kSurplus> by_arrival_;
};

}  // namespace weir::osd::qos
