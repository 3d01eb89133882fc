#include "common/qos/booking.h"

#include <cmath>

#include "common/qos/delay_bound.h"

namespace weir {
namespace {

uint64_t InBytes(double requests, double unit) {
  const double bytes = std::ceil(requests * unit - 1e-6);
  return bytes < static_cast<double>(Booking::kImpossible) ? static_cast<uint64_t>(bytes)
                                                           : Booking::kImpossible;
}

uint64_t PromiseBooking(const Reservation& reservation, double unit, size_t osds) {
  const uint64_t bytes =
      BookedPerOsd(reservation.bytes_per_s, reservation.scope, osds, reservation.leeway);
  if (reservation.iops == 0) return bytes;
  const uint64_t requests =
      BookedPerOsd(reservation.iops, reservation.scope, osds, reservation.leeway);
  return std::max(bytes, InBytes(static_cast<double>(requests), unit));
}

}  // namespace

ServiceContract LocalContract(const ServiceContract& contract, size_t osds) {
  return osds <= 1 ? contract : PartOf(contract, osds, kLeeway);
}

Booking BookingOf(const ClassSpec& spec, const SchedulerConfig& osd, size_t osds) {
  Booking booking;
  const double unit = osd.RequestUnit();
  if (spec.reservation) {
    booking.promise = PromiseBooking(*spec.reservation, unit, osds);
    booking.promise_measured = spec.reservation->admission == AdmissionKind::kMeasured;
  }
  if (spec.service.bound > Duration(0)) {
    const ServiceContract part = LocalContract(spec.service, osds);
    const double iops_max = osd.EffectiveIopsMax();
    const auto needed =
        iops_max > 0 ? IopsForDelay(part.max_pending, iops_max, part.bound) : std::nullopt;
    booking.bound = needed ? InBytes(*needed, unit) : Booking::kImpossible;
    booking.bound_measured = spec.admission == AdmissionKind::kMeasured;
  }
  if (spec.disk.type != ClassType::kBestEffort) {
    const uint64_t peak = spec.disk.peak_bytes_per_s;
    booking.disk = peak > 0 ? std::min(peak, Booking::kImpossible)
                            : InBytes(spec.disk.peak, static_cast<double>(osd.token_rate));
  }
  return booking;
}

}  // namespace weir
