// WaitMeter: what the requests of a class wait for, as time is spent: at any moment all that a
// class has queued waits for whatever holds its head back. So one step per change of the class,
// times the requests that stand there, gives the sums of common/qos/class_times.h (Little's law
// read backwards); a request carries only how long its class's limit had held back something when
// it came, so that it can say how long it was itself.
//
// A turn is shared out later (blame.h) by what was released meanwhile. On the device a request is
// held up by others for as long as it takes longer than the cost model thinks it takes alone.
//
// Threads: the scheduler's owner. Pure.
#pragma once

#include "osd/qos/class_queue.h"
#include "osd/qos/throttle.h"

namespace weir::osd::qos {

class WaitMeter {
 public:
  // Spends the time until now in the state that the class is in. Before anything of it changes.
  void Advance(ClassQueue* queue, TimePoint now) const;
  // What holds the head back from now on; after it was placed. Requires: Advance to now.
  static void Placed(ClassQueue* queue, bool held_by_limit);
  // `request` comes into the queue. Requires: Advance to now.
  static void Arrived(const ClassQueue& queue, Request* request);
  // It leaves the queue for the window. Requires: Advance to now.
  void Released(ClassQueue* queue, Request* request, TimePoint now);
  // `request` leaves the device, on which there are `others_bytes` of other classes. Requires:
  // Advance to now.
  static void Completed(ClassQueue* queue, const Request& request, uint64_t others_bytes,
                        TimePoint now);
  // What blocks the head in turn, of whatever class.
  void SetBlocked(Blocked::By by) { blocked_by_ = by; }

 private:
  uint64_t released_bytes_ = 0;
  Blocked::By blocked_by_ = Blocked::By::kNothing;
};

}  // namespace weir::osd::qos
