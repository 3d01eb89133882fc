#include "osd/qos/device/service_time.h"

#include <algorithm>
#include <cmath>

namespace weir::osd::qos {
namespace {

constexpr double kSmallestNs = 1000;
const double kLogWidth = std::log(1.02);

}  // namespace

uint16_t SlidingQuantile::BinOf(Duration time) {
  const auto ns = static_cast<double>(time.count());
  if (ns <= kSmallestNs) return 0;
  const double bin = std::log(ns / kSmallestNs) / kLogWidth;
  return static_cast<uint16_t>(std::min(bin, static_cast<double>(kBins - 1)));
}

Duration SlidingQuantile::EdgeOf(size_t bin) {
  return Duration(
      static_cast<int64_t>(kSmallestNs * std::exp(kLogWidth * static_cast<double>(bin + 1))));
}

void SlidingQuantile::Add(Duration time, uint16_t bin) {
  if (ring_.size() < window_) {
    ring_.emplace_back(bin, time.count());
  } else {
    const auto [old, old_ns] = ring_[next_];
    --counts_[old];
    if (old < at_) --below_;
    sum_ns_ -= old_ns;
    ring_[next_] = {bin, time.count()};
    next_ = (next_ + 1) % window_;
  }
  ++counts_[bin];
  if (bin < at_) ++below_;
  sum_ns_ += time.count();
  ++samples_;
  Follow();
}

// Moves at_ to the first bin up to whose end at least `part` of the samples lie.
void SlidingQuantile::Follow() {
  const size_t before = at_;
  const double wanted = part_ * static_cast<double>(ring_.size());
  while (at_ > 0 && static_cast<double>(below_) >= wanted) below_ -= counts_[--at_];
  while (at_ + 1 < kBins && static_cast<double>(below_ + counts_[at_]) < wanted) {
    below_ += counts_[at_++];
  }
  if (at_ != before || samples_ == 1) value_ = EdgeOf(at_);
}

Duration SlidingQuantile::Mean() const {
  return ring_.empty() ? Duration(0) : Duration(sum_ns_ / static_cast<int64_t>(ring_.size()));
}

ServiceTime::ServiceTime(double part, Duration first)
    : first_(first),
      all_(part, kWindow),
      by_op_{SlidingQuantile(part, kWindow), SlidingQuantile(part, kWindow),
             SlidingQuantile(part, kWindow)} {}

void ServiceTime::Add(OpKind op, Duration time) {
  const uint16_t bin = SlidingQuantile::BinOf(time);
  all_.Add(time, bin);
  by_op_[static_cast<size_t>(op)].Add(time, bin);
}

Duration ServiceTime::Estimate(OpKind op) const {
  const SlidingQuantile& own = by_op_[static_cast<size_t>(op)];
  if (own.samples() >= kEnough) return own.Value();
  return all_.samples() >= kEnough ? all_.Value() : first_;
}

Duration ServiceTime::Mean() const {
  return all_.samples() >= kEnough ? all_.Mean() : first_;
}

}  // namespace weir::osd::qos
