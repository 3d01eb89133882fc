// Stonehenge's five steps on one OSD, with what it measured (osd/qos/RULES.md §4.4).
#include <algorithm>
#include <cmath>

#include "mds/cluster/admission.h"

namespace weir::mds {
namespace {

double AtPercent(const std::vector<double>& quantiles, double e, double unknown) {
  if (quantiles.empty()) return unknown;
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(e * 100 - 1e-9)));
  return quantiles[std::min(rank, quantiles.size()) - 1];
}

// The requests per second that a class is promised, a bound aside.
double Declared(const Booking& booking, double unit) {
  return static_cast<double>(booking.promise) / unit;
}

// What the OSDs see of a contract: its part of the bound, and its rate in requests.
ServiceContract Seen(const ClassSpec& spec, const Booking& booking, double unit, size_t osds,
                     bool bound, bool promise) {
  ServiceContract contract = LocalContract(spec.service, osds);
  if (!bound) contract.bound = Duration(0);
  contract.iops = promise ? Declared(booking, unit) : 0;
  return contract;
}

}  // namespace

ServiceMeasures OsdMeasures::View() const {
  return {.service_part = [this](double e) { return AtPercent(service_parts, e, 1); },
          .io_rate = [this](double x) { return AtPercent(io_rates, x, 0); },
          .stable = stable};
}

OsdDecision DecideMeasured(const ClusterMap& map, const OsdEntry& osd, const ClassSpec& spec,
                           Wanted wanted, const OsdMeasures& measures) {
  OsdDecision decision;
  const double unit = osd.qos.RequestUnit();
  const double iops_max = osd.qos.EffectiveIopsMax();
  if (iops_max <= 0) return decision;
  const size_t osds = map.osds.size();
  std::vector<AdmittedClass> classes;
  AdmissionOptions options;
  auto taken = static_cast<double>(osd.qos.EffectiveBestEffortMin());
  for (const auto& [id, entry] : map.classes) {
    if (id == spec.id || IsSystemClass(entry.spec)) continue;
    const Booking booking = BookingOf(entry.spec, osd.qos, osds);
    taken += static_cast<double>(booking.worst_case());
    const bool bound = booking.bound_measured && booking.bound > booking.worst_case();
    const bool promise = booking.promise_measured && booking.promise > booking.worst_case();
    if (!bound && !promise) continue;
    const bool seen = measures.measured.contains(id);
    if (bound && !seen) ++options.unmeasured;
    // A rate beside a bound may not have been counted by the OSD: it must not vanish.
    const bool counted = seen && booking.bound == 0;
    classes.push_back(
        {Seen(entry.spec, booking, unit, osds, bound, promise), promise ? counted : seen});
  }
  options.taken = taken / unit;
  const Booking booking = BookingOf(spec, osd.qos, osds);
  ServiceContract newcomer =
      Seen(spec, booking, unit, osds, wanted == Wanted::kBound, wanted == Wanted::kReservation);
  const ContractDecision found =
      AdmitMeasured(classes, newcomer, iops_max, measures.View(), options);
  const bool possible = wanted != Wanted::kBound || booking.bound != Booking::kImpossible;
  decision.admitted = found.admitted && possible;
  decision.needed = std::isfinite(found.rates.back()) ? found.rates.back() : iops_max;
  const double others = found.reserved - found.rates.back();
  const double limit = std::max(0.0, found.spare + options.taken);
  decision.limit = static_cast<uint64_t>(limit * unit);
  const double promised = std::isfinite(others) ? others + options.taken : limit;
  decision.promised = static_cast<uint64_t>(std::ceil(promised * unit));
  return decision;
}

}  // namespace weir::mds
