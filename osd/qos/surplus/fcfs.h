// Fcfs: the surplus of ODIS (AQuA §5.2): whoever's head arrived first borrows first.
#pragma once

#include "osd/qos/class_heap.h"
#include "osd/qos/surplus/surplus.h"

namespace weir::osd::qos {

class Fcfs final : public Surplus {
 public:
  void Arrived(Request* request) override;
  void Offer(ClassQueue* queue) override;
  void OfferAgain(ClassQueue* queue) override { Offer(queue); }
  void Withdraw(ClassQueue* queue) override { by_arrival_.Remove(queue); }
  ClassQueue* Pick() override;
  void Released(ClassQueue* queue, bool guaranteed) override;

 private:
  ClassHeap<uint64_t, HeapSlot::kSurplus> by_arrival_;
};

}  // namespace weir::osd::qos
