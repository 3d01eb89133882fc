// LimitWindow: whether a class with a limit over all OSDs may send another request, such that no
// second of what its mount is answered has more than the limit.
//
// Each OSD holds the limit by what requests tell it of the others (delay_tracker.h), which it hears
// one request late: several of them together let a little more pass when a class begins or moves to
// other OSDs. The mount sees all answers. A request that leaves now is answered no sooner than now
// + d, d being three quarters of the least latency of its OSD (least_latency.h). Every second that
// holds its answer began after now + d - 1 s, and has at most what was answered since then and what
// is under way: these stay within the limit, a two-hundredth of it and one request, however late or
// bunched the OSDs answer. Of a steady latency that takes a quarter of it from every second, less
// that two-hundredth: nothing up to 20 ms, 0.7 % of 50 ms. (To count the whole last second would
// take all of it.)
//
// What may leave only because d is known leaves at little more than the pace of the limit: should
// the latency have fallen, the first answer tells before much has left.
//
// Time at an OSD for the limit itself is no part of d: the two-hundredth would wait there, and with
// it counted more would be let go, and wait there, without end.
//
// What is under way for two seconds counts no more: its OSD may be gone, and the others are not to
// wait for it; nor is it likely to answer all at once.
//
// Over how long the second is spread is the OSDs' business, and so is the total of several mounts.
// What happens within a millisecond is kept as one, at the time of the last: some thousands at
// most.
//
// Pure. Units: bytes. Threads: not safe; under the lock of its owner. `now` may go backwards by as
// much as threads take to come to that lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "client/qos/least_latency.h"
#include "common/base/ids.h"
#include "common/base/time.h"

namespace weir::client {

class LimitWindow {
 public:
  static constexpr Duration kSpan = std::chrono::seconds(1);

  static constexpr Duration kOverdue = std::chrono::seconds(2);

  // `flying`: under way already.
  LimitWindow(uint64_t bytes_per_s, uint64_t flying, TimePoint now);
  // From now on. Of a lower one what was answered before counts as if it had held then already, so
  // that nobody pays for what he was entitled to by standing still.
  void SetRate(uint64_t bytes_per_s);

  // Whether a request to that OSD may leave.
  [[nodiscard]] bool Admits(OsdId osd, TimePoint now);
  // When it may if nothing is answered until then. Requires: it was asked and may not.
  [[nodiscard]] TimePoint AdmitsAt() const;

  void Sent(uint64_t bytes, TimePoint now);
  // What was sent at `left` is back; Failed: and was not served.
  void Answered(uint64_t bytes, TimePoint left, TimePoint now);
  void Failed(uint64_t bytes, TimePoint left);
  // What an answer took, without what its OSD held it back for the limit.
  void Took(OsdId osd, Duration latency, TimePoint now) { latencies_[osd].Saw(latency, now); }

 private:
  struct Together {
    TimePoint first, last;
    uint64_t bytes;
  };
  using Events = std::deque<Together>;
  static void Add(Events* events, size_t from, uint64_t bytes, TimePoint now);
  void Forget(TimePoint now);
  void MoveOver(TimePoint from);
  // When `left`, of answers from there on and all that is under way, has become little enough.
  [[nodiscard]] TimePoint FitsAt(size_t from, uint64_t left, Duration least) const;

  Events answered_;  // in the last second
  uint64_t answered_bytes_ = 0;
  size_t over_ = 0;             // so many in front are over for whoever asked last
  uint64_t counted_bytes_ = 0;  // the sum of the others
  Events sent_;                 // and not back nor overdue
  uint64_t flying_ = 0;         // their sum
  uint64_t rate_;
  uint64_t most_ = 0;
  std::map<OsdId, LeastLatency> latencies_;
  Duration least_{0};  // of whoever asked last
  TimePoint paced_;    // before, nothing leaves only because of it
};

}  // namespace weir::client
