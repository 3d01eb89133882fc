#include "common/placement/class_promise.h"

#include <algorithm>
#include <cmath>

#include "common/placement/cluster_map.h"
#include "common/wire/map.pb.h"

namespace weir {

std::vector<PeakOnOsd> PeaksOf(const wire::ClusterMap& map, const wire::ClassInfo& info) {
  std::vector<PeakOnOsd> peaks;
  const auto entry = FromWire(info);
  if (!entry.ok() || entry->spec.disk.type == ClassType::kBestEffort) return peaks;
  for (const wire::OsdInfo& osd : map.osds()) {
    const uint64_t whole = osd.qos().token_rate();
    const double share = ShareOn(entry->spec.disk, whole);
    const auto rate = static_cast<uint64_t>(std::llround(share * static_cast<double>(whole)));
    peaks.push_back({osd.id(), share, rate});
  }
  return peaks;
}

uint64_t PromisedTo(const wire::ClusterMap& map, const wire::ClassInfo& info) {
  const wire::ReservationInfo& reservation = info.reservation();
  const bool on_each = reservation.scope() == "osd";
  const uint64_t reserved =
      reservation.bytes_per_s() * (on_each ? static_cast<uint64_t>(map.osds_size()) : 1);
  uint64_t by_type = info.throughput_bytes_per_s();
  if (by_type == 0) {
    for (const PeakOnOsd& peak : PeaksOf(map, info)) by_type += peak.bytes_per_s;
  }
  return std::max(reserved, by_type);
}

}  // namespace weir
