#include "mds/cluster/admission.h"

#include <algorithm>

#include "common/base/units.h"

namespace weir::mds {
namespace {

std::string Name(const OsdEntry& osd) {
  return "osd." + std::to_string(osd.id.value);
}

bool IsMeasured(const ClassSpec& spec, Wanted wanted) {
  if (wanted == Wanted::kReservation) {
    return spec.reservation->admission == AdmissionKind::kMeasured;
  }
  return wanted == Wanted::kBound && spec.admission == AdmissionKind::kMeasured;
}

// What `count` of a class's bookings sums to, of all classes but `besides`.
uint64_t SumOf(const ClusterMap& map, const OsdEntry& osd, ClassId besides,
               uint64_t (Booking::*count)() const) {
  uint64_t sum = 0;
  for (const auto& [id, entry] : map.classes) {
    if (id == besides || IsSystemClass(entry.spec)) continue;
    sum += (BookingOf(entry.spec, osd.qos, map.osds.size()).*count)();
  }
  return sum;
}

bool AnyContract(const ClusterMap& map, const OsdEntry& osd) {
  return SumOf(map, osd, ClassId(UINT32_MAX), &Booking::worst_case) > 0;
}

bool AnyDisk(const ClusterMap& map) {
  return std::any_of(map.classes.begin(), map.classes.end(), [](const auto& one) {
    return one.second.spec.disk.type != ClassType::kBestEffort;
  });
}

}  // namespace

bool IsSystemClass(const ClassSpec& spec) {
  return spec.id.value > kBestEffort.value && spec.id < kFirstUserClass;
}

uint64_t BookedOf(const Booking& booking, Wanted wanted) {
  switch (wanted) {
    case Wanted::kReservation:
      return booking.promise;
    case Wanted::kBound:
      return booking.bound;
    case Wanted::kDisk:
      return booking.disk;
  }
  return booking.total();
}

uint64_t PromisedOn(const ClusterMap& map, const OsdEntry& osd, ClassId besides) {
  return osd.qos.EffectiveBestEffortMin() + SumOf(map, osd, besides, &Booking::total);
}

OsdDecision DecideAdditive(const ClusterMap& map, const OsdEntry& osd, const ClassSpec& spec,
                           Wanted wanted) {
  OsdDecision decision;
  const Booking booking = BookingOf(spec, osd.qos, map.osds.size());
  const bool whole = wanted == Wanted::kDisk;  // disks are shared without the minimum
  decision.promised =
      whole ? SumOf(map, osd, spec.id, &Booking::total) : PromisedOn(map, osd, spec.id);
  decision.limit = osd.qos.token_rate;
  decision.needed =
      static_cast<double>(BookedOf(booking, wanted)) / std::max(1.0, osd.qos.RequestUnit());
  decision.admitted = BookedOf(booking, wanted) <= decision.room();
  return decision;
}

Status AdmitClass(const ClusterMap& map, const ClassSpec& spec, Wanted wanted,
                  const MeasuresByOsd& measures) {
  const std::string what = "cannot " + Describe(spec, wanted);
  if (map.osds.empty()) {
    return {ErrorCode::kRefused, what + ": the cluster has no OSD (start a weir-osd first)"};
  }
  const OsdEntry* worst = nullptr;
  OsdDecision refusal;
  for (const auto& [id, osd] : map.osds) {
    const auto found = measures.find(id);
    const OsdMeasures none;
    const OsdDecision decision =
        IsMeasured(spec, wanted)
            ? DecideMeasured(map, osd, spec, wanted, found == measures.end() ? none : found->second)
            : DecideAdditive(map, osd, spec, wanted);
    if (decision.admitted || (worst != nullptr && decision.room() >= refusal.room())) continue;
    worst = &osd;
    refusal = decision;
  }
  if (worst == nullptr) return Status::Ok();
  if (worst->qos.token_rate == 0) {
    return {ErrorCode::kRefused, what + " on " + Name(*worst) +
                                     ": its token rate is not known (osdctl profile " +
                                     std::to_string(worst->id.value) + " --apply)"};
  }
  return {ErrorCode::kRefused,
          what + " on " + Name(*worst) + ": " + WhyRefused(map, *worst, spec, wanted, refusal)};
}

Status AdmitOsdChange(const ClusterMap& map, const OsdEntry& changed) {
  if (!AnyContract(map, changed)) return Status::Ok();  // nothing is promised to anybody
  const uint64_t minimum = changed.qos.EffectiveBestEffortMin();
  const uint64_t to_classes = SumOf(map, changed, ClassId(UINT32_MAX), &Booking::worst_case);
  const uint64_t promised = to_classes + (AnyDisk(map) ? 0 : minimum);
  if (promised <= changed.qos.token_rate) return Status::Ok();
  const OsdEntry& old = map.osds.at(changed.id);
  if (changed.qos.iops_max != old.qos.iops_max) {
    return {ErrorCode::kRefused,
            "cannot set the requests per second of " + Name(changed) + " to " +
                std::to_string(static_cast<uint64_t>(changed.qos.EffectiveIopsMax())) + ": " +
                FormatRate(promised) + " of " + FormatRate(changed.qos.token_rate) +
                " would be promised (release reservations first)"};
  }
  if (changed.qos.token_rate == old.qos.token_rate) {
    const uint64_t room =
        changed.qos.token_rate > to_classes ? changed.qos.token_rate - to_classes : 0;
    return {ErrorCode::kRefused, "cannot set the best-effort minimum of " + Name(changed) + " to " +
                                     FormatRate(minimum) + ": " + FormatRate(to_classes) + " of " +
                                     FormatRate(changed.qos.token_rate) +
                                     " already promised (largest that fits: " + FormatRate(room) +
                                     ")"};
  }
  return {ErrorCode::kRefused, "cannot set the token rate of " + Name(changed) + " to " +
                                   FormatRate(changed.qos.token_rate) + ": " +
                                   FormatRate(promised) +
                                   " is promised on it (release reservations first)"};
}

}  // namespace weir::mds
