// CostModel: what the device shows about the cost of a request, fitted live as
//
//   time(bytes) = fixed + per_byte * bytes        Stonehenge eq. (2): avg_ovh + L/T
//
// Twice per kind of operation: `busy`, the share of the device's time that a request takes while
// the device is never idle (how fast requests follow each other), and `alone`, the time from
// submission to completion of a request that had the device to itself. A serial disk has busy =
// alone; one with channels or a pipeline busy < alone, and alone / busy requests keep it busy.
//
// Device time at depth > 1 is attributed from completion to completion (C6): a request is charged
// from its submission or from the last completion before its own, whichever is later, so that the
// charges of a busy period add up to that period. Example: submitted together at 0, completed at 10
// and 14 ms: 10 and 4 ms.
//
// Units: seconds and bytes inside, Duration outside. Threads: the scheduler's owner. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "osd/qos/scheduler.h"

namespace weir::osd::qos {

// Attribution of device time to requests.
class DeviceClock {
 public:
  // The request submitted then completes now; returns what it is charged.
  Duration Completed(TimePoint submitted, TimePoint now);

 private:
  TimePoint last_completion_;
};

// Least squares of time over bytes that forgets: a sample counts half after 700 more. Neither
// coefficient is ever negative; requests of one size alone are taken to cost only by the byte.
class LinearFit {
 public:
  void Add(uint64_t bytes, Duration time);
  [[nodiscard]] uint64_t samples() const { return samples_; }
  [[nodiscard]] double fixed() const { return fixed_; }        // seconds
  [[nodiscard]] double per_byte() const { return per_byte_; }  // seconds
  [[nodiscard]] Duration At(uint64_t bytes) const;

 private:
  void Solve();

  uint64_t samples_ = 0;
  double weight_ = 0, bytes_ = 0, time_ = 0, bytes_bytes_ = 0, bytes_time_ = 0;  // sums
  double fixed_ = 0;
  double per_byte_ = 0;
};

class CostModel {
 public:
  // Samples after which a fit is believed.
  static constexpr uint64_t kEnough = 16;

  // `request` goes to the device, which has `in_flight` others.
  void Submitted(const Request& request, size_t in_flight, TimePoint now);
  // It comes back; returns the device time that it is charged.
  Duration Completed(const Request& request, TimePoint now);

  // 0 as long as nothing is known.
  [[nodiscard]] Duration Busy(OpKind op, uint64_t bytes) const;
  [[nodiscard]] Duration Alone(OpKind op, uint64_t bytes) const;
  [[nodiscard]] const LinearFit& busy(OpKind op) const { return busy_[static_cast<size_t>(op)]; }
  // When a request last had the device to itself.
  [[nodiscard]] TimePoint last_alone() const { return last_alone_; }

 private:
  using Fits = std::array<LinearFit, 3>;

  static Duration At(const Fits& fits, OpKind op, uint64_t bytes);

  DeviceClock clock_;
  Fits busy_;
  Fits alone_;
  const Request* solo_ = nullptr;  // on the device, and nobody else since it got there
  TimePoint last_alone_;
};

}  // namespace weir::osd::qos
