#include "mds/cluster/admission.h"

#include <algorithm>
#include <limits>

#include "common/base/units.h"

namespace weir::mds {
namespace {

// The largest reservation whose booking on each OSD stays within `room`.
uint64_t LargestRate(uint64_t room, ReservationScope scope, size_t osds) {
  if (BookedPerOsd(room, scope, osds) > room) return 0;
  uint64_t low = room;
  uint64_t high = std::numeric_limits<uint64_t>::max() / 4;
  while (low < high) {  // BookedPerOsd grows with the rate
    const uint64_t middle = low + (high - low + 1) / 2;
    if (BookedPerOsd(middle, scope, osds) <= room) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

std::string Name(const OsdEntry& osd) {
  return "osd." + std::to_string(osd.id.value);
}

}  // namespace

bool IsSystemClass(const ClassSpec& spec) {
  return spec.id.value > kBestEffort.value && spec.id < kFirstUserClass;
}

uint64_t PromisedOn(const ClusterMap& map, const OsdEntry& osd, ClassId besides) {
  uint64_t promised = osd.qos.EffectiveBestEffortMin();
  for (const auto& [id, entry] : map.classes) {
    if (id == besides || IsSystemClass(entry.spec) || !entry.spec.reservation.has_value()) continue;
    const Reservation& reservation = *entry.spec.reservation;
    promised += BookedPerOsd(reservation.bytes_per_s, reservation.scope, map.osds.size());
  }
  return promised;
}

Status AdmitReservation(const ClusterMap& map, const ClassSpec& spec, const Reservation& wanted) {
  const std::string what =
      "cannot reserve " + FormatRate(wanted.bytes_per_s) + " for '" + spec.name + "'";
  if (map.osds.empty()) {
    return {ErrorCode::kRefused, what + ": the cluster has no OSD (start a weir-osd first)"};
  }
  const OsdEntry* worst = nullptr;
  AdmissionDecision refusal;
  for (const auto& [id, osd] : map.osds) {
    const uint64_t booked = BookedPerOsd(wanted.bytes_per_s, wanted.scope, map.osds.size());
    const AdmissionDecision decision =
        AdmitAdditive(osd.qos.token_rate, PromisedOn(map, osd, spec.id), booked);
    if (decision.admitted || (worst != nullptr && decision.largest >= refusal.largest)) continue;
    worst = &osd;
    refusal = decision;
  }
  if (worst == nullptr) return Status::Ok();
  if (worst->qos.token_rate == 0) {
    return {ErrorCode::kRefused, what + " on " + Name(*worst) +
                                     ": its token rate is not known (osdctl profile " +
                                     std::to_string(worst->id.value) + " --apply)"};
  }
  const uint64_t largest = LargestRate(refusal.largest, wanted.scope, map.osds.size());
  return {ErrorCode::kRefused, what + " on " + Name(*worst) + ": " + FormatRate(refusal.promised) +
                                   " of " + FormatRate(worst->qos.token_rate) +
                                   " already promised (largest that fits: " + FormatRate(largest) +
                                   ")"};
}

Status AdmitOsdChange(const ClusterMap& map, const OsdEntry& changed) {
  bool any = false;
  for (const auto& [id, entry] : map.classes) any = any || entry.spec.reservation.has_value();
  if (!any) return Status::Ok();  // nothing is promised to anybody
  const uint64_t promised = PromisedOn(map, changed, ClassId(UINT32_MAX));
  if (promised <= changed.qos.token_rate) return Status::Ok();
  const uint64_t minimum = changed.qos.EffectiveBestEffortMin();
  const uint64_t to_classes = promised - minimum;
  const OsdEntry& old = map.osds.at(changed.id);
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
