// VirtualClock: the finish time of a request, when a disk that serves nobody else at the promised
// rate would have finished it (Stonehenge eq. 1-3; RULES.md §4.2, §7 rule 6).
//
//   FT_i = max(AT_i, FT_{i-1}) + 1/IOPS_j                     (3) a class with requests per second
//   FT_i = max(AT_i, FT_{i-1}) + L/B                          (1) a class with a rate in bytes
//   FT_i = max(AT_i, FT_{i-1}) + est/f                        a virtual disk (guarantee/htb.h)
//
// IOPS_j is what the contract asks for or what its latency bound needs by (10), or was granted as
// measured (A24), the larger. AT is the moment the request left the earlier stages. A class with
// neither has no finish time (FT = Max): its requests are served in C-SCAN's turn or when nothing
// else waits. Example: 50 per second, arrivals at 0, 0, 100 ms: FT = 20, 40, 120 ms.
//
// Of a promise over all OSDs, what the class was served on others moves FT_{i-1} by as many steps,
// so that the promise is one over all of them (DSFQ's delays, as in htb.h).
//
// A18: a class that used spare service has FT far ahead and is starved when others return;
// `ahead_max` bounds FT_{i-1} to now + ahead_max. Pure; the class's FT lives in ClassQueue.
#pragma once

#include "osd/qos/class_queue.h"

namespace weir::osd::qos {

// Requests per second that finish times of the class are spaced by; 0: none. `iops_max` <= 0: the
// device's speed is not known, a latency bound then counts without the 1/IOPSmax of (10).
double FinishRate(const ServiceContract& contract, double iops_max);

// Stamps request->finish_time and advances the class's clock.
void StampFinishTime(ClassQueue* queue, Request* request, Duration ahead_max, TimePoint now);

}  // namespace weir::osd::qos
