// What a refusal says: the class, the promise, the OSD, what it has promised, what still fits.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "common/base/units.h"
#include "common/qos/delay_bound.h"
#include "mds/cluster/admission.h"

namespace weir::mds {
namespace {

// The largest reservation like `wanted` whose booking on each OSD stays within `room`.
uint64_t LargestRate(uint64_t room, const Reservation& wanted, size_t osds) {
  const auto booked = [&wanted, osds](uint64_t rate) {
    return BookedPerOsd(rate, wanted.scope, osds, wanted.leeway);
  };
  if (booked(room) > room) return 0;
  uint64_t low = room;
  uint64_t high = std::numeric_limits<uint64_t>::max() / 4;
  while (low < high) {  // what is booked grows with the rate
    const uint64_t middle = low + (high - low + 1) / 2;
    if (booked(middle) <= room) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

std::string Percent(double part) {
  return fmt::format("{:g}%", std::floor(part * 10'000) / 100);
}

std::string Requests(double count) {
  return fmt::format("{} requests/s", static_cast<uint64_t>(count));
}

std::string Bound(const ClassSpec& spec) {
  const bool of_disk = spec.disk.type == ClassType::kLatency;
  return FormatDuration(of_disk ? spec.disk.latency : spec.service.bound) + "@" +
         Percent(spec.service.probability);
}

// With `fits` requests per second more: the bound that they would keep, rounded up to 100 us.
std::string ShortestBound(const ClassSpec& spec, const OsdEntry& osd, size_t osds, double fits,
                          double needed) {
  const ServiceContract part = LocalContract(spec.service, osds);
  const double iops_max = osd.qos.EffectiveIopsMax();
  // Under measured admission fewer requests keep a bound than in the worst case: by c of (11).
  const double worst = IopsForDelay(part.max_pending, iops_max, part.bound).value_or(needed);
  const double c = needed > 0 && needed < worst ? (DelayBound(part.max_pending, worst, iops_max) /
                                                   DelayBound(part.max_pending, needed, iops_max))
                                                : 1;
  const double seconds = DelayBound(part.max_pending, fits, iops_max, c);
  const double rounded = std::ceil(seconds * 1e4) / 1e4;
  return FormatDuration(FromSeconds(rounded + 1e-9));
}

std::string WhyNoBound(const ClusterMap& map, const OsdEntry& osd, const ClassSpec& spec,
                       const OsdDecision& decision) {
  const double unit = osd.qos.RequestUnit();
  const double fits = std::floor(static_cast<double>(decision.room()) / unit);
  const double iops_max = osd.qos.EffectiveIopsMax();
  if (ToSeconds(spec.service.bound) <= 1 / iops_max) {
    return fmt::format(
        "one request alone takes {} there (osdctl osd set {} --iops-max N, if it is faster)",
        FormatDuration(FromSeconds(1 / iops_max)), osd.id.value);
  }
  std::string text =
      fmt::format("{} of {} already promised, this needs {} (largest that fits: {}",
                  static_cast<uint64_t>(static_cast<double>(decision.promised) / unit),
                  Requests(static_cast<double>(decision.limit) / unit),
                  static_cast<uint64_t>(std::ceil(decision.needed - 1e-6)), Requests(fits));
  if (fits >= 1) {
    text += ", a bound of " + ShortestBound(spec, osd, map.osds.size(), fits, decision.needed);
  }
  return text + ")";
}

std::string WhyNoReservation(const ClusterMap& map, const OsdEntry& osd, const ClassSpec& spec,
                             const OsdDecision& decision) {
  const Reservation& wanted = *spec.reservation;
  const size_t osds = map.osds.size();
  const bool by_bytes =
      BookedPerOsd(wanted.bytes_per_s, wanted.scope, osds, wanted.leeway) > decision.room();
  const std::string promised = FormatRate(decision.promised) + " of " + FormatRate(decision.limit) +
                               " already promised (largest that fits: ";
  if (by_bytes || wanted.iops == 0) {
    return promised + FormatRate(LargestRate(decision.room(), wanted, osds)) + ")";
  }
  const double unit = osd.qos.RequestUnit();
  const double fits = std::floor(static_cast<double>(decision.room()) / unit);
  const uint64_t requests = LargestRate(static_cast<uint64_t>(fits), wanted, osds);
  return promised + Requests(static_cast<double>(requests)) + " of " +
         FormatSize(static_cast<uint64_t>(unit)) + ")";
}

}  // namespace

std::string Describe(const ClassSpec& spec, Wanted wanted) {
  std::string name = "'" + spec.name + "'";
  switch (wanted) {
    case Wanted::kReservation: {
      const Reservation& reservation = *spec.reservation;
      std::string what;
      if (reservation.bytes_per_s > 0) what = FormatRate(reservation.bytes_per_s);
      if (reservation.iops > 0) {
        what += (what.empty() ? "" : " and ") + Requests(static_cast<double>(reservation.iops));
      }
      return "reserve " + what + " for " + name;
    }
    case Wanted::kBound:
      return "promise " + Bound(spec) + " to " + name;
    case Wanted::kDisk:
      return spec.disk.peak_bytes_per_s > 0
                 ? "promise a peak of " + FormatRate(spec.disk.peak_bytes_per_s) + " to " + name
                 : "promise " + Percent(spec.disk.peak) + " of the disk to " + name;
  }
  return name;
}

std::string WhyRefused(const ClusterMap& map, const OsdEntry& osd, const ClassSpec& spec,
                       Wanted wanted, const OsdDecision& decision) {
  switch (wanted) {
    case Wanted::kReservation:
      return WhyNoReservation(map, osd, spec, decision);
    case Wanted::kBound:
      return WhyNoBound(map, osd, spec, decision);
    case Wanted::kDisk:
      break;
  }
  if (spec.disk.peak_bytes_per_s > 0) {
    return FormatRate(decision.promised) + " of " + FormatRate(decision.limit) +
           " already promised (largest that fits: " + FormatRate(decision.room()) + ")";
  }
  const auto whole = static_cast<double>(decision.limit);
  return Percent(static_cast<double>(decision.promised) / whole) +
         " already promised (largest that fits: " +
         Percent(static_cast<double>(decision.room()) / whole) + ")";
}

}  // namespace weir::mds
