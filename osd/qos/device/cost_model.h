// CostModel: what the device shows about the cost of a request, fitted live.
//
//   alone(op, bytes) = fixed + per_byte * bytes   from submission to completion with the device to
//                                                 itself (Stonehenge eq. 2: avg_ovh + L/T)
//   busy(op, bytes)  = use * alone                device time that it takes while the device is
//                                                 never idle: how fast requests follow each other
//
// `use` is the time in which the device worked over what the requests that it completed would have
// taken one by one: 1 on a serial disk, 1/8 on one that needs eight requests at once. It is one
// number because under a mix the cost of the parts cannot be told apart: from completion to
// completion a small read between two large writes is charged what the writes took.
//
// That attribution (DeviceClock; C6) is nevertheless right in sum: a request is charged from its
// submission or from the last completion before its own, whichever is later, so that the charges of
// a busy period add up to that period. Example: submitted together at 0, completed at 10 and 14 ms:
// 10 and 4 ms.
//
// Units: seconds and bytes inside, Duration outside. Threads: the scheduler's owner. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "osd/qos/request.h"

namespace weir::osd::qos {

// Attribution of device time to requests.
class DeviceClock {
 public:
  // The request submitted then completes now; returns what it is charged.
  Duration Completed(TimePoint submitted, TimePoint now);

 private:
  TimePoint last_completion_;
};

// Least squares of time over bytes that forgets: the weight of a sample falls by `keep` with each
// one after it. Neither coefficient is ever negative; requests of one size alone are taken to cost
// only by the byte.
class LinearFit {
 public:
  explicit LinearFit(double keep) : keep_(keep) {}

  void Add(uint64_t bytes, Duration time);
  [[nodiscard]] uint64_t samples() const { return samples_; }
  [[nodiscard]] double fixed() const { return fixed_; }        // seconds
  [[nodiscard]] double per_byte() const { return per_byte_; }  // seconds
  [[nodiscard]] double Seconds(uint64_t bytes) const {
    return fixed_ + per_byte_ * static_cast<double>(bytes);
  }

 private:
  void Solve();

  double keep_;
  uint64_t samples_ = 0;
  double weight_ = 0, bytes_ = 0, time_ = 0, bytes_bytes_ = 0, bytes_time_ = 0;  // sums
  double fixed_ = 0;
  double per_byte_ = 0;
};

class CostModel {
 public:
  // `request` goes to the device, which has `in_flight` others.
  void Submitted(const Request& request, size_t in_flight) {
    solo_ = in_flight == 0 ? &request : nullptr;
  }
  // It comes back; returns the device time that it is charged.
  Duration Completed(const Request& request, TimePoint now);

  // 0 as long as nothing is known. Before a request was ever seen alone, from the attribution.
  [[nodiscard]] Duration Alone(OpKind op, uint64_t bytes) const;
  // Before anything is known, a byte per nanosecond: only the ratio of costs matters.
  [[nodiscard]] Duration Busy(OpKind op, uint64_t bytes) const;
  // How long the device works on so many bytes, at the rate at which it worked lately; a request
  // is worth a token of them at least. 0 as long as nothing is known.
  [[nodiscard]] Duration WorkOf(uint64_t bytes) const {
    return FromSeconds(worked_bytes_ > 0 ? worked_ / worked_bytes_ * static_cast<double>(bytes)
                                         : 0);
  }
  // The line that Alone stands on for this kind, none while nothing is known.
  [[nodiscard]] const LinearFit* Line(OpKind op) const;
  [[nodiscard]] double use() const { return use_; }
  // Whether the request that completed last had the device to itself.
  [[nodiscard]] bool last_was_alone() const { return last_was_alone_; }
  // How many requests had the device to themselves, and when the last one had.
  [[nodiscard]] uint64_t alone_samples() const { return alone_samples_; }
  [[nodiscard]] TimePoint last_alone() const { return last_alone_; }

 private:
  using Fits = std::array<LinearFit, 3>;
  static constexpr int kWindow = 32;  // completions from one look at `use` to the next

  static const LinearFit* BestOf(const Fits& fits, OpKind op);
  void LearnUse(const Request& request, Duration charged);

  DeviceClock clock_;
  Fits alone_{LinearFit(0.98), LinearFit(0.98), LinearFit(0.98)};
  Fits charged_{LinearFit(0.999), LinearFit(0.999), LinearFit(0.999)};
  double use_ = 1;
  double worked_ = 0;  // seconds, and bytes that were done in them; old ones fade
  double worked_bytes_ = 0;
  int in_window_ = 0;
  double window_charged_ = 0;
  double window_alone_ = 0;
  const Request* solo_ = nullptr;  // on the device, and nobody else since it got there
  bool last_was_alone_ = false;
  uint64_t alone_samples_ = 0;
  TimePoint last_alone_;
};

}  // namespace weir::osd::qos
