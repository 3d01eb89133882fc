// ServiceTime: how long one request takes the device, as lately measured (Stonehenge §5.6): a
// sliding histogram of the last 10^4 services per kind of operation, and from it the estimate of
// eq. (5), P_IOtime^-1(0.90). Bins are 2 % wide, so a quantile is good to 2 %.
//
// Cost: O(1) per sample: the quantile is followed bin by bin as samples come and go.
// Threads: the scheduler's owner.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "osd/qos/request.h"

namespace weir::osd::qos {

// One quantile of the last samples.
class SlidingQuantile {
 public:
  SlidingQuantile(double part, size_t window) : part_(part), window_(window) {}

  void Add(Duration time) { Add(time, BinOf(time)); }
  void Add(Duration time, uint16_t bin);
  static uint16_t BinOf(Duration time);
  [[nodiscard]] uint64_t samples() const { return samples_; }
  // The upper edge of the bin that holds the quantile, 0 without samples.
  [[nodiscard]] Duration Value() const { return value_; }
  [[nodiscard]] Duration Mean() const;

 private:
  static constexpr size_t kBins = 1200;  // of 2 % each, from 1 us: up to 6 hours

  static Duration EdgeOf(size_t bin);
  void Follow();

  double part_;
  size_t window_;
  uint64_t samples_ = 0;
  std::vector<std::pair<uint16_t, int64_t>> ring_;  // bin and nanoseconds, oldest at next_
  size_t next_ = 0;
  int64_t sum_ns_ = 0;
  std::array<uint32_t, kBins> counts_{};
  size_t at_ = 0;       // bin of the quantile
  Duration value_{0};   // its upper edge
  uint64_t below_ = 0;  // samples in bins before at_
};

class ServiceTime {
 public:
  static constexpr size_t kWindow = 10'000;
  static constexpr uint64_t kEnough = 100;

  // `first`: the estimate until kEnough samples are there.
  ServiceTime(double part, Duration first);

  void Add(OpKind op, Duration time);
  // est for an operation of this kind: of its own kind if that is known, else of any.
  [[nodiscard]] Duration Estimate(OpKind op) const;
  // Mean of all, `first` until it is known: 1/IOPSmax of eq. (4).
  [[nodiscard]] Duration Mean() const;

 private:
  Duration first_;
  SlidingQuantile all_;
  std::array<SlidingQuantile, 3> by_op_;
};

}  // namespace weir::osd::qos
