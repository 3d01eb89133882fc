// EventQueue: virtual time. Actions run in the order of their moments; of two at the same moment
// the one that was asked for first runs first, so that a run repeats bit for bit.
//
// Threads: one at a time. A queue belongs to one simulated cluster or one emulated disk, which
// share nothing with others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/time.h"

namespace weir::model {

class EventQueue {
 public:
  using Action = std::function<void()>;  // captures of two pointers need no allocation

  [[nodiscard]] TimePoint now() const { return now_; }
  // The moment of the earliest action; Max: none.
  [[nodiscard]] TimePoint next() const {
    return events_.empty() ? TimePoint::Max() : events_.front().when;
  }
  [[nodiscard]] uint64_t events_run() const { return events_run_; }

  // A moment that has passed means now.
  void At(TimePoint when, Action action) {
    events_.push_back({std::max(when, now_), next_++, std::move(action)});
    std::push_heap(events_.begin(), events_.end(), Later);
  }
  void After(Duration wait, Action action) { At(now_ + wait, std::move(action)); }

  // Runs everything up to `end`, included, and leaves the clock there.
  void RunTo(TimePoint end) {
    while (!events_.empty() && events_.front().when <= end) {
      std::pop_heap(events_.begin(), events_.end(), Later);
      Event event = std::move(events_.back());
      events_.pop_back();
      now_ = event.when;
      ++events_run_;
      event.action();
    }
    now_ = end;
  }

 private:
  struct Event {
    TimePoint when;
    uint64_t sequence;
    Action action;
  };
  static bool Later(const Event& a, const Event& b) {
    return a.when > b.when || (a.when == b.when && a.sequence > b.sequence);
  }

  std::vector<Event> events_;  // a heap, the earliest in front
  TimePoint now_{0};
  uint64_t next_ = 0;
  uint64_t events_run_ = 0;
};

}  // namespace weir::model
