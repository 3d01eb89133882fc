// LimitWindow: whether a class with a limit over all OSDs may send another request, and be given an
// answer that has come, such that no second of its answers has more than the limit.
//
// The mount has a part of the limit (limit_share.h) and sees all answers that it gets, from
// whichever OSDs. A request that leaves now is answered no sooner than now + d, d being three
// quarters of the least latency of its OSD (least_latency.h). Every second that holds its answer
// began after now + d - 1 s, and has at most what was answered since then and what is under way:
// these stay within the limit, a two-hundredth of it and one request, however late or bunched the
// OSDs answer. Of a steady latency that takes a quarter of it from every second, less that
// two-hundredth: nothing up to 20 ms, 0.7 % of 50 ms. (To count the whole last second would take
// all of it.)
//
// Should a latency fall below d, answers come sooner than was counted on: as a queue at an OSD that
// ends does to all behind it at once. Those that the second has no room for are held back, as under
// way, until it has, 250 ms at most: longer than any d, so that only those of a part that shrinks
// are given before there is room.
//
// What leaves does so at the pace of the part, which spreads it over the second. A fifth of a
// second's worth is saved up, so that a pause is made good.
//
// Time at an OSD for the limit itself is no part of d: the two-hundredth would wait there, and with
// it counted more would be let go, and wait there, without end.
//
// What is under way for two seconds counts no more: its OSD may be gone, and the others are not to
// wait for it; nor is it likely to answer all at once.
//
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

  // The longest that an answer is held back.
  static constexpr Duration kLongestHeld = LeastLatency::kMost;

  // `flying`: under way already.
  LimitWindow(uint64_t bytes_per_s, uint64_t flying, TimePoint now);
  // From now on. What was answered before counts as if it had held then already: so nobody pays by
  // standing still for what he was entitled to, and several mounts between which parts of a limit
  // move have no more in a second together.
  void SetRate(uint64_t bytes_per_s, TimePoint now);

  // Whether a request to that OSD may leave.
  [[nodiscard]] bool Admits(OsdId osd, TimePoint now);
  // When it may if nothing is answered until then. Requires: it was asked and may not.
  [[nodiscard]] TimePoint AdmitsAt() const;

  void Sent(uint64_t bytes, TimePoint now);
  // Whether an answer that came at `arrived` may be given to who asked.
  [[nodiscard]] bool AdmitsAnswer(TimePoint arrived, TimePoint now);
  // When it may if no other is given until then. Requires: it was asked and may not.
  [[nodiscard]] TimePoint AdmitsAnswerAt(TimePoint arrived) const;
  // What was sent at `left` is answered; Failed: and was not served.
  void Answered(uint64_t bytes, TimePoint left, TimePoint now);
  void Failed(uint64_t bytes, TimePoint left);
  // All that was answered, ever.
  [[nodiscard]] uint64_t served_bytes() const { return served_bytes_; }
  // What an answer took, without what its OSD held it back for the limit.
  void Took(OsdId osd, Duration latency, TimePoint now) { latencies_[osd].Saw(latency, now); }

 private:
  struct Together {
    TimePoint first, last;
    uint64_t bytes;
  };
  using Events = std::deque<Together>;
  static void Add(Events* events, size_t from, uint64_t bytes, TimePoint now);
  void Scale(double old_rate, TimePoint now);
  // Evenly.
  static void Spread(TimePoint from, TimePoint to, uint64_t bytes, Events* out);
  void Forget(TimePoint now);
  void MoveOver(TimePoint from);

  Events answered_;              // in the last second
  uint64_t answered_bytes_ = 0;  // their sum
  size_t over_ = 0;              // so many in front are over for whoever asked last
  uint64_t counted_bytes_ = 0;   // the sum of the others
  Events sent_;                  // and not answered nor overdue
  uint64_t flying_ = 0;          // their sum
  uint64_t served_bytes_ = 0;
  uint64_t rate_;
  uint64_t scaled_to_;  // the last rate that was not 0: of it are the bytes in answered_
  TimePoint last_sent_;
  bool may_catch_up_ = true;
  uint64_t most_ = 0;
  std::map<OsdId, LeastLatency> latencies_;
  Duration least_{0};  // of whoever asked last
  TimePoint paced_;    // before, nothing leaves
};

}  // namespace weir::client
