// The promise meter: did a class with enough demand get what it was promised? Counts violation
// seconds for people, and tells the bandwidth maximizer when it has gone too far.
//
// Demand is enough when something of the class waited during the whole window (A14: a class that
// asks for less than its rate is never violated). Under a promise for all OSDs together, what the
// class got elsewhere counts. Units: bytes. Pure functions over the class's own fields.
#pragma once

#include "osd/qos/class_queue.h"

namespace weir::osd::qos {

// `bytes` of the class were completed here, or sent elsewhere under a total promise.
void CountService(ClassQueue* queue, uint64_t bytes);

// Ends a window of a second (or more, if the caller was late): adds its seconds to
// violation_seconds if the service stayed 2 % below the promise. Service comes in whole requests,
// so one request above or below the line is carried from window to window.
void CloseSecond(ClassQueue* queue, TimePoint start, TimePoint now);

// Ends the maximizer's period: true if served < rate * period - 2 * largest request.
bool ClosePeriod(ClassQueue* queue, TimePoint start, TimePoint now);

}  // namespace weir::osd::qos
