// ProcessorPace: how fast others go while a class with a latency bound reads, and processors are
// what it waits for.
//
// A small read passes a dozen threads, of the application, the mount and the daemon. Where those
// who write hundreds of megabytes share the processors with them, it waits at each, and no order on
// the device helps. So the pressure on the processors (the part of the time in which somebody who
// could run did not) is kept at what an operator chose, by pacing what is neither promised nor
// small nor of a class with a bound. The pace follows the pressure: every `kEvery` it is multiplied
// by
//
//   chosen / pressure, within [kDown, kUp]
//
// and it goes when nobody would be held back by it. Several OSDs of a machine look at the same
// pressure, so they slow down and speed up together.
//
// The pressure of others is not ours to relieve: where it stays although the others here have been
// held to 1/kDeepest of what they had, for kFutile, they are let go for kRest.
//
// Measured, two virtual processors, isolation.py full (bound of 5 ms, 80 writers), a run each with
// and without: the reader's p99 309 to 436 us and 408 to 635 us, the writers keep 16 to 27 % and 39
// to 49 %.
//
// Threads: the scheduler's owner. Pure. Units: bytes, seconds of waiting per second.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/time.h"

namespace weir::osd::qos {

class ProcessorPace {
 public:
  static constexpr double kTarget = 0.22;
  static constexpr double kDown = 0.75;
  static constexpr double kUp = 1.08;
  static constexpr double kDeepest = 16;
  static constexpr Duration kEvery = std::chrono::milliseconds(100);
  static constexpr Duration kHurryLasts = std::chrono::seconds(1);
  static constexpr Duration kFutile = std::chrono::seconds(2);
  static constexpr Duration kRest = std::chrono::seconds(10);
  // Of what was not used while nobody asked.
  static constexpr Duration kSaved = std::chrono::milliseconds(2);

  // The part of the time; 1: whatever it is, nobody is held back.
  void Choose(double pressure);
  // A class with a latency bound that has little under way sent a request while the device works
  // for others.
  void Hurried(TimePoint now);
  // When Look is wanted; Max while nobody is in a hurry.
  [[nodiscard]] TimePoint LookAt() const { return look_at_; }
  // How long somebody has waited for a processor since whenever: a sum that grows.
  void Look(Duration waited, TimePoint now);

  // Whether one of the others may go, and when.
  [[nodiscard]] bool Admits(TimePoint now) const { return !Limits(now) || now >= next_; }
  [[nodiscard]] TimePoint AdmitsAt() const { return next_; }
  void Take(uint64_t bytes, TimePoint now);
  // Bytes per second; 0: as fast as they can.
  [[nodiscard]] uint64_t rate(TimePoint now) const {
    return Limits(now) ? static_cast<uint64_t>(*rate_) : 0;
  }

 private:
  [[nodiscard]] bool Acts(TimePoint now) const { return now < hurry_ends_; }
  [[nodiscard]] bool Limits(TimePoint now) const { return rate_ && Acts(now); }
  void Follow(double served, TimePoint now);
  void LetGo();
  [[nodiscard]] bool IsFutile(TimePoint now);

  TimePoint hurry_ends_;
  TimePoint look_at_ = TimePoint::Max();
  std::optional<TimePoint> looked_at_;
  Duration waited_{0};
  double chosen_ = 1;
  double pressure_ = 0;         // smoothed
  uint64_t taken_ = 0;          // since the last look
  double most_ = 0;             // bytes per second that others had since they were let go last
  std::optional<double> rate_;  // empty: they are not held back
  TimePoint next_;              // when the next one may go
  std::optional<TimePoint> deepest_since_;
  TimePoint rests_until_;
};

}  // namespace weir::osd::qos
