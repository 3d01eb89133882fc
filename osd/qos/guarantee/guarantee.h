// Guarantee: the first stage, which class is owed service now whatever the others do.
//
// The scheduler tells it about every change of a class's head or promise, asks Pick for the class
// to serve, and reports with Take what it released. Threads: the scheduler's owner.
#pragma once

#include <cstdint>

#include "osd/qos/class_queue.h"

namespace weir::osd::qos {

class Guarantee {
 public:
  virtual ~Guarantee() = default;

  // The class's promise (queue->promised) or its largest request changed.
  virtual void PromiseChanged(ClassQueue* queue, TimePoint now) = 0;
  // The class is going: forget its promise.
  virtual void Remove(ClassQueue* queue) = 0;
  // The class has a head that may be served, and it may be a new one.
  virtual void Offer(ClassQueue* queue, TimePoint now) = 0;
  // The class has no head, or its limit holds it.
  virtual void Withdraw(ClassQueue* queue) = 0;
  // `tokens`, or 0, of a class whose promise holds over all OSDs were sent to others since its last
  // request here, says the one that goes now (RULES.md §3.7).
  virtual void ServedElsewhere(ClassQueue* queue, int64_t tokens, TimePoint now) = 0;

  // The class whose head is to be served as owed, or none.
  virtual ClassQueue* Pick(TimePoint now) = 0;
  // The head of that class is being released; the caller removes it from the queue afterwards.
  virtual void Take(ClassQueue* queue, int64_t tokens, TimePoint now) = 0;
  // A request of the class is done (with no device time: was cancelled after its release).
  virtual void Completed(ClassQueue* queue, const Request& request, Duration device_time,
                         TimePoint now) = 0;
  // How long requests of the class may take for what it has under way to give it its promise; max:
  // however long, as it spends what it is owed. Asked when `done` is.
  [[nodiscard]] virtual Duration SpanOf(const ClassQueue& queue, const Request& done,
                                        TimePoint now) const = 0;
  // When Pick may next find one; TimePoint::Max() if only an arrival can help.
  [[nodiscard]] virtual TimePoint WakeAt() const = 0;
  // How far the leaves may overdraw the root together, in tokens.
  [[nodiscard]] virtual int64_t LeafCaps() const = 0;
};

}  // namespace weir::osd::qos
