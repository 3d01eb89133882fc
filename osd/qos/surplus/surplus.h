// Surplus: the second stage, who gets what nobody is owed. The scheduler offers it every class with
// a head that may be served; Pick names one, and the gate decides whether its head may pass.
//
// A request that waits at the gate is not overtaken by one that Pick would name later, or large
// requests would starve; but for a few that PickLight names. Threads: the scheduler's owner.
#pragma once

#include "osd/qos/class_queue.h"

namespace weir::osd::qos {

class Surplus {
 public:
  virtual ~Surplus() = default;

  // Stamps a request at its arrival.
  virtual void Arrived(Request* /*request*/) {}
  // The class has a head that may be served; it, or the class's weight, may be new.
  virtual void Offer(ClassQueue* queue) = 0;
  // The same, after the class's own limit held it back: it earned no credit meanwhile.
  virtual void OfferAgain(ClassQueue* queue) = 0;
  // The class has no head, or its limit holds it.
  virtual void Withdraw(ClassQueue* queue) = 0;
  // The class next in turn, or none.
  virtual ClassQueue* Pick() = 0;
  // While the head of Pick's class waits for the gate or for room: a class with little to do whose
  // small head may pass it without taking more than its share, or none. `free`: its share does not
  // matter, as it is not what the others wait for; it is released as if guaranteed.
  virtual ClassQueue* PickLight(bool /*free*/) { return nullptr; }
  // The head of this class is being released, by either stage; it is still in the queue.
  virtual void Released(ClassQueue* /*queue*/, bool /*guaranteed*/) {}
  // The class is going, or the box is: forget all about it.
  virtual void Remove(ClassQueue* queue) { Withdraw(queue); }

  // What not every box cares about.
  // As of when the next Pick decides.
  virtual void SetTime(TimePoint /*now*/) {}
  // One more request waits behind the head.
  virtual void Grew(ClassQueue* /*queue*/) {}
  // A waiting request of the class is being cancelled; it is still in the queue.
  virtual void Leaving(ClassQueue* /*queue*/, Request* /*request*/) {}
  // A request of the class is done (or, with no device time, was cancelled after its release).
  virtual void Completed(ClassQueue* /*queue*/, const Request& /*request*/,
                         Duration /*device_time*/, TimePoint /*now*/) {}
};

}  // namespace weir::osd::qos
