// DelayTracker: the coordinator's half of DSFQ. For every class it knows what was sent to each OSD
// and answers, in O(1), how much of it went to other OSDs since the last request to this one.
//
// Source: DSFQ §3.2 eq. (7): delay(p) = batchcost(p) - cost(p). With cum = all cost sent so far and
// mark[osd] = cum just after the last request to that OSD, the delay is cum - mark[osd].
// Ambiguity A3: a first request to an OSD counts everything since the class began here.
// Which part of it an OSD lets count (single, total, hybrid) is DelayFunction's business.
//
// Units: its caller's: tokens of 1 KiB, or requests, as an OSD's cost is counted. Threads: not
// thread-safe.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"

namespace weir::client {

class DelayTracker {
 public:
  // A request of `cost` leaves for `osd` now; returns its delay. A retry of the same request
  // carries the delay of its first sending (A4) and is not reported again.
  int64_t OnSend(ClassId class_id, OsdId osd, int64_t cost);

  // All cost ever sent for a class, and what went to other OSDs since the mark of this one (its
  // next delay); for statistics and tests.
  [[nodiscard]] int64_t Cumulative(ClassId class_id) const;
  [[nodiscard]] int64_t Unsent(ClassId class_id, OsdId osd) const;

  // The OSDs that the class was sent to through this coordinator.
  [[nodiscard]] std::vector<OsdId> OsdsOf(ClassId class_id) const;
  // How many (class, OSD) pairs it remembers, for accounts of memory.
  [[nodiscard]] size_t marks() const;

  // Forgets classes that do not exist any more.
  void Forget(ClassId class_id);

 private:
  struct Stream {
    int64_t cumulative = 0;
    std::unordered_map<OsdId, int64_t> marks;
  };
  std::unordered_map<ClassId, Stream> streams_;
};

}  // namespace weir::client
