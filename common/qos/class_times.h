// Where the time of a class goes, as sums that only grow; whoever wants "lately" takes the
// difference of two looks. OSDs and mounts count them, the MDS keeps the last seconds, blame.h
// judges.
//
// Units: nanoseconds and bytes. "Of requests": summed over all requests that were in that state,
//        also those that are still in it; "by the clock": at most a second per second.
#pragma once

#include <cstdint>
#include <map>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace weir {

struct OsdClassTimes {
  // What moves with nearly every request comes first (osd/qos/class_queue.h).
  uint64_t turn_ns = 0;  // of requests: the scheduler let others, or its own earlier ones, go first
  // Released from a wait for its turn, and what others were released meanwhile: how turn_ns is
  // shared out between the class itself and its neighbours.
  uint64_t turn_own_bytes = 0;
  uint64_t turn_others_bytes = 0;
  uint64_t device_ns = 0;   // of requests: on the device
  uint64_t active_ns = 0;   // by the clock: it had a request here
  uint64_t limited_ns = 0;  // by the clock: its limit held something back
  uint64_t ops = 0;
  uint64_t bytes = 0;
  uint64_t limit_ns = 0;  // of requests: held back by the class's own limit
  uint64_t rate_ns = 0;   // of turn_ns: while the OSD's token rate let nobody pass
  uint64_t pace_ns = 0;   // of turn_ns: while others' latency bound kept processors from it
  uint64_t owed_ns = 0;   // of requests: owed service, and the device had no room
  uint64_t crowd_ns = 0;  // of device_ns: what the requests of others there cost it

  OsdClassTimes& operator+=(const OsdClassTimes& other);
  // `older` is an earlier look at the same sums; a sum that was larger then counts as none.
  OsdClassTimes& operator-=(const OsdClassTimes& older);
  friend bool operator==(const OsdClassTimes&, const OsdClassTimes&) = default;
};

struct MountClassTimes {
  uint64_t ops = 0;
  uint64_t bytes = 0;
  uint64_t window_ns = 0;   // of requests: waited for the window of their class to the OSD
  uint64_t limit_ns = 0;    // of requests: held back here by the class's limit over all OSDs
  uint64_t network_ns = 0;  // of requests: on the way to an OSD or back, or none is reached
  uint64_t limited_ns = 0;  // by the clock: its limit held something back here
  uint64_t active_ns = 0;   // by the clock: it had a request

  MountClassTimes& operator+=(const MountClassTimes& other);
  MountClassTimes& operator-=(const MountClassTimes& older);
  friend bool operator==(const MountClassTimes&, const MountClassTimes&) = default;
};

// FreshRows: which classes are worth a row in a report: those that had I/O since kKeep ago. So a
// report that is lost costs nothing, and a thousand idle classes neither.
// Threads: not safe.
class FreshRows {
 public:
  static constexpr Duration kKeep = std::chrono::seconds(5);
  [[nodiscard]] bool IsFresh(ClassId id, uint64_t active_ns, TimePoint now);

 private:
  struct Seen {
    uint64_t active_ns = 0;
    TimePoint changed;
  };
  std::map<ClassId, Seen> seen_;
};

}  // namespace weir
