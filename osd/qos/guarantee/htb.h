// Htb: the leaves of AQuA's hierarchical token bucket (§5.2; RULES.md §3.2). A class with a
// promise has a leaf that refills at the promised rate; a head that its leaf covers is owed service
// now, the earliest head first. A class without a promise is never owed anything.
//
// A promise in requests per second is a second leaf, counted in 64ths of a request; a class with
// both is owed when both leaves cover the head (§3.8). The requests per second that a latency bound
// needs are a third one: a head that it covers is owed whatever the first two say, and what is paid
// by either side counts against both, so that such a class is owed the larger of the two, not their
// sum. A request larger than unit_tokens counts as several, except where a promise in bytes bounds
// it anyway. What was promised in full goes before what measured admission promised beyond the
// disk. Of a class with transactions (§3.6) a head that its transaction's own leaf covers is owed
// whatever the class's leaf in bytes says.
//
// A virtual disk (common/qos/virtual_disk.h) is a leaf in microseconds of the device, which refills
// at its share of the time: f seconds a second. A head is owed while there is any left; it pays
// what requests of the class take (a moving average), and the difference when it is complete. A
// throughput disk has its rate c as a second bucket, and is owed when both cover; so is a promise R
// in bytes, with what was booked for it, R / G0, where somebody rents time.
//
// Cost: O(log n). A class waits in a heap keyed by the moment its leaf will cover its head, which
// nothing but the class's own events can change, and moves to a heap keyed by arrival when due.
#pragma once

#include "osd/qos/class_heap.h"
#include "osd/qos/guarantee/guarantee.h"

namespace weir::osd::qos {

class Htb final : public Guarantee {
 public:
  void PromiseChanged(ClassQueue* queue, TimePoint now) override;
  void Remove(ClassQueue* queue) override;
  void Offer(ClassQueue* queue, TimePoint now) override;
  void Withdraw(ClassQueue* queue) override;
  void ServedElsewhere(ClassQueue* queue, int64_t tokens, TimePoint now) override;
  ClassQueue* Pick(TimePoint now) override;
  void Take(ClassQueue* queue, int64_t tokens, TimePoint now) override;
  void Completed(ClassQueue* queue, const Request& request, Duration device_time,
                 TimePoint now) override;
  [[nodiscard]] Duration SpanOf(const ClassQueue& queue, const Request& done,
                                TimePoint now) const override;
  [[nodiscard]] TimePoint WakeAt() const override {
    return waiting_.empty() ? TimePoint::Max() : waiting_.TopKey();
  }
  [[nodiscard]] int64_t LeafCaps() const override { return leaf_caps_; }

 private:
  ClassHeap<TimePoint, HeapSlot::kOwnWaiting> waiting_;
  ClassHeap<uint64_t, HeapSlot::kOwnReady> ready_;
  int64_t leaf_caps_ = 0;
};

}  // namespace weir::osd::qos
