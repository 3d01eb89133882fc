// The promise meter: did a class with enough demand get what it was promised? Counts violation
// seconds for people, and tells the bandwidth maximizer when it has gone too far.
//
// Demand is enough when during the whole window something of the class waited, or when it kept at
// least 50 ms of its promise under way on the device (a device with a deep queue of its own hides
// the backlog; one request at a time is a latency-bound client, not a broken promise). A14: a class
// that asks for less than its rate is never violated. Under a promise for all OSDs together, what
// the class got elsewhere counts. Units: bytes. Pure functions over the class's own fields.
#pragma once

#include "osd/qos/class_queue.h"

namespace weir::osd::qos {

// To be called after anything of the class came, moved or went, or its promise changed.
void NoteDemand(ClassQueue* queue, TimePoint now);

[[nodiscard]] bool HadDemandSince(const ClassQueue& queue, TimePoint start);

// `bytes` in `requests` of the class were completed here, or sent elsewhere under a total promise.
void CountService(ClassQueue* queue, uint64_t bytes, double requests);

// Ends a window of a second (or more, if the caller was late): true if the service stayed 2 % below
// a promise; below both, of one in bytes and requests, as either may be what holds the class
// (RULES.md §3.8). A promise is kept up to one bucket and one request (I-13), so that much, above
// or below the line, is carried from window to window. `worked`: seconds that the device worked for
// anybody; a virtual disk is promised its share of them. 0: nobody counts them.
bool CloseSecond(ClassQueue* queue, double worked, TimePoint start, TimePoint now);

// Ends the maximizer's period: true if served < rate * period - 2 * largest request.
bool ClosePeriod(ClassQueue* queue, TimePoint start, TimePoint now);

}  // namespace weir::osd::qos
