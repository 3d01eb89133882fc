// DelayBound: from a latency bound to the rate that keeps it, and back (Stonehenge §4.2.1).
//
//   FT_i  = max(AT_i, FT_{i-1}) + L/B                                              (1) network
//   FT_i  = max(AT_i, FT_{i-1}) + (L + avg_ovh*T)/B                                (2) disk, bytes
//   D <= (sigma + Lmax)/B + Lmax/T                                                 (6)
//   D <= (sigma + Lmax)/B_eff + Lmax/T_eff,  L/B_eff = (L + avg_ovh*T)/B           (7) (8)
//   D <= (avg_ovh*(mpr+1)*T + mpr*avg_size + Lmax)/B + (Lmax + avg_ovh*T)/T        (9)
//   D <= (mpr+1)/IOPS + 1/IOPSmax   =>   IOPS = (mpr+1)/(D - 1/IOPSmax)            (10)
//   D <= ((mpr+1)/IOPS + 1/IOPSmax) * c,   c = Q_service(E) + s                    (11)
//
// mpr: most requests that wait beside the newest. T: bandwidth of the device. Example (table 1):
// mpr 14, IOPSmax 630, D 120 ms: 126.68 requests/s by (10); with Q = .11, s = .2: 38.91 by (11).
// Units: seconds, bytes, requests per second. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/time.h"

namespace weir {

// A device as the equations see it. Rates > 0.
struct DiskFigures {
  double iops_max = 0;          // IOPSmax
  double bytes_per_s = 0;       // T
  double overhead_seconds = 0;  // avg_ovh: seek and rotation, no queueing
};

// The byte form's view of a class.
struct RequestFigures {
  uint32_t max_pending = 0;
  double average_bytes = 0;
  double largest_bytes = 0;
};

// (6). Requires rates > 0.
double NetworkDelayBound(double burst_bytes, double largest_bytes, double rate, double bandwidth);
// (8): the bytes that a request of `bytes` is worth on a disk.
double EffectiveBytes(double bytes, const DiskFigures& disk);
// (9) and (9) solved for B; none if no rate keeps the bound.
double ByteDelayBound(const RequestFigures& requests, const DiskFigures& disk, double rate);
std::optional<double> RateForDelay(const RequestFigures& requests, const DiskFigures& disk,
                                   Duration bound);
// (10), (11) (c < 1) and both solved for IOPS; none if D/c <= 1/IOPSmax: even an idle disk is too
// slow. Requires iops_max > 0, 0 < c.
double DelayBound(uint32_t max_pending, double iops, double iops_max, double c = 1);
std::optional<double> IopsForDelay(uint32_t max_pending, double iops_max, Duration bound,
                                   double c = 1);

}  // namespace weir
