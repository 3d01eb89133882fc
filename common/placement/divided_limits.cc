#include "common/placement/divided_limits.h"

#include <algorithm>
#include <cmath>

#include "common/wire/mds.pb.h"

namespace weir {
namespace {

constexpr double kUnit = 1e9;  // of a part on the wire

// Rounded down: the sum is not to exceed the limit.
uint32_t ToUnits(double part) {
  return static_cast<uint32_t>(std::clamp(part, 0.0, 1.0) * kUnit);
}

Duration ToDuration(uint64_t ns) {
  return Duration(static_cast<int64_t>(std::min<uint64_t>(ns, INT64_MAX)));
}

}  // namespace

bool IsLimitedOverOsds(const ClusterMap& map, const ClassSpec& spec) {
  const bool each = spec.reservation && spec.reservation->scope == ReservationScope::kOsd;
  return spec.limit_bytes_per_s && !each && map.osds.size() > 1;
}

std::map<ClassId, uint64_t> DividedLimits(const ClusterMap& map) {
  std::map<ClassId, uint64_t> limits;
  for (const auto& [id, entry] : map.classes) {
    if (IsLimitedOverOsds(map, entry.spec)) limits[id] = *entry.spec.limit_bytes_per_s;
  }
  return limits;
}

void ToWire(const LimitReport& report, wire::LimitReport* message) {
  message->set_class_id(report.class_id.value);
  message->set_part(static_cast<uint32_t>(std::lround(std::clamp(report.part, 0.0, 1.0) * kUnit)));
  message->set_interval_ns(static_cast<uint64_t>(report.interval.count()));
  message->set_served_bytes(report.served_bytes);
  message->set_queued_bytes(report.queued_bytes);
  message->set_limited_ns(static_cast<uint64_t>(report.limited.count()));
}

LimitReport FromWire(const wire::LimitReport& message) {
  LimitReport report;
  report.class_id = ClassId(message.class_id());
  report.part = std::min(message.part() / kUnit, 1.0);
  report.interval = ToDuration(message.interval_ns());
  report.served_bytes = message.served_bytes();
  report.queued_bytes = message.queued_bytes();
  report.limited = ToDuration(message.limited_ns());
  return report;
}

wire::DivideLimitsReply ToWire(const std::vector<LimitPart>& parts) {
  wire::DivideLimitsReply message;
  for (const LimitPart& part : parts) {
    auto* row = message.add_parts();
    row->set_class_id(part.class_id.value);
    row->set_part(ToUnits(part.part));
    row->set_equal(ToUnits(part.equal));
  }
  return message;
}

std::vector<LimitPart> FromWire(const wire::DivideLimitsReply& message) {
  std::vector<LimitPart> parts;
  for (const auto& row : message.parts()) {
    parts.push_back({ClassId(row.class_id()), row.part() / kUnit, row.equal() / kUnit});
  }
  return parts;
}

}  // namespace weir
