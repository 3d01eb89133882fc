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

bool Has(const ClassSpec& spec, Wanted wanted) {
  switch (wanted) {
    case Wanted::kReservation:
      return spec.reservation.has_value();
    case Wanted::kBound:
      return spec.service.bound > Duration(0);
    case Wanted::kDisk:
      return spec.disk.type != ClassType::kBestEffort;
  }
  return false;
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
  return SumOf(map, osd, ClassId(UINT32_MAX), &Booking::total) > 0;
}

// Whether the OSD would have less to promise than before.
bool HasLess(const OsdEntry& before, const OsdEntry& now) {
  const uint64_t minimum = now.qos.EffectiveBestEffortMin();
  return now.qos.token_rate < before.qos.token_rate ||
         now.qos.EffectiveIopsMax() < before.qos.EffectiveIopsMax() ||
         (now.qos.best_effort_min != before.qos.best_effort_min &&
          minimum > before.qos.EffectiveBestEffortMin());
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
  // Virtual disks share the disk without the minimum where nothing else gives it away.
  const bool whole = wanted == Wanted::kDisk && osd.qos.surplus == SurplusKind::kCooperative;
  decision.promised =
      whole ? SumOf(map, osd, spec.id, &Booking::total) : PromisedOn(map, osd, spec.id);
  decision.limit = osd.qos.token_rate;
  decision.needed =
      static_cast<double>(BookedOf(booking, wanted)) / std::max(1.0, osd.qos.RequestUnit());
  decision.admitted = BookedOf(booking, wanted) <= decision.room();
  return decision;
}

bool AsksForMore(const ClusterMap& map, const ClassSpec& before, const ClassSpec& now,
                 Wanted wanted) {
  if (!Has(before, wanted)) return true;
  if (now.service.probability > before.service.probability) return true;
  if (IsMeasured(before, wanted) && !IsMeasured(now, wanted)) return true;
  return std::any_of(map.osds.begin(), map.osds.end(), [&](const auto& one) {
    const auto booked = [&](const ClassSpec& spec) {
      return BookedOf(BookingOf(spec, one.second.qos, map.osds.size()), wanted);
    };
    return booked(now) > booked(before);
  });
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
    OsdDecision decision;  // of an OSD whose rate nobody knows: no
    if (osd.qos.token_rate > 0) {
      decision = IsMeasured(spec, wanted)
                     ? DecideMeasured(map, osd, spec, wanted,
                                      found == measures.end() ? none : found->second)
                     : DecideAdditive(map, osd, spec, wanted);
    }
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

Status AdmitCapacity(const ClusterMap& map, const ClassSpec& spec, uint64_t bytes) {
  uint64_t there = 0;
  for (const auto& [id, osd] : map.osds) there += osd.capacity_bytes;
  uint64_t promised = 0;
  for (const auto& [id, entry] : map.classes) {
    if (id != spec.id) promised += entry.capacity_bytes;
  }
  const uint64_t room = there - std::min(there, promised);
  if (bytes <= room) return Status::Ok();
  return {ErrorCode::kRefused,
          "cannot promise a capacity of " + FormatSize(bytes) + " to '" + spec.name +
              "': " + FormatSize(promised) + " of " + FormatSize(there) +
              " already promised (largest that fits: " + FormatSize(room) + ")"};
}

Status AdmitOsdChange(const ClusterMap& map, const OsdEntry& changed) {
  if (!AnyContract(map, changed)) return Status::Ok();  // nothing is promised to anybody
  const uint64_t minimum = changed.qos.EffectiveBestEffortMin();
  const OsdEntry& old = map.osds.at(changed.id);
  // Measured admission may have promised more than there is; an OSD that gets no smaller keeps it.
  const auto count = HasLess(old, changed) ? &Booking::total : &Booking::worst_case;
  const uint64_t to_classes = SumOf(map, changed, ClassId(UINT32_MAX), count);
  const bool whole = AnyDisk(map) && changed.qos.surplus == SurplusKind::kCooperative;
  const uint64_t promised = to_classes + (whole ? 0 : minimum);
  if (promised <= changed.qos.token_rate) return Status::Ok();
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
