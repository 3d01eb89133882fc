#include "common/qos/delay_bound.h"

namespace weir {

double NetworkDelayBound(double burst_bytes, double largest_bytes, double rate, double bandwidth) {
  return (burst_bytes + largest_bytes) / rate + largest_bytes / bandwidth;
}

double EffectiveBytes(double bytes, const DiskFigures& disk) {
  return bytes + disk.overhead_seconds * disk.bytes_per_s;
}

namespace {

// (9)'s numerator over B, and its constant.
double BurstBytes(const RequestFigures& requests, const DiskFigures& disk) {
  const double pending = requests.max_pending;
  return disk.overhead_seconds * (pending + 1) * disk.bytes_per_s +
         pending * requests.average_bytes + requests.largest_bytes;
}

double ServiceSeconds(const RequestFigures& requests, const DiskFigures& disk) {
  return EffectiveBytes(requests.largest_bytes, disk) / disk.bytes_per_s;
}

}  // namespace

double ByteDelayBound(const RequestFigures& requests, const DiskFigures& disk, double rate) {
  return BurstBytes(requests, disk) / rate + ServiceSeconds(requests, disk);
}

std::optional<double> RateForDelay(const RequestFigures& requests, const DiskFigures& disk,
                                   Duration bound) {
  const double left = ToSeconds(bound) - ServiceSeconds(requests, disk);
  if (left <= 0) return std::nullopt;
  return BurstBytes(requests, disk) / left;
}

double DelayBound(uint32_t max_pending, double iops, double iops_max, double c) {
  return ((max_pending + 1.0) / iops + 1 / iops_max) * c;
}

std::optional<double> IopsForDelay(uint32_t max_pending, double iops_max, Duration bound,
                                   double c) {
  const double left = ToSeconds(bound) / c - 1 / iops_max;
  if (left <= 0) return std::nullopt;
  return (max_pending + 1.0) / left;
}

}  // namespace weir
