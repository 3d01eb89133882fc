#include "common/monitor/troubles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/ids.h"
#include "common/base/units.h"
#include "common/placement/cluster_map.h"
#include "common/placement/near_full.h"
#include "common/qos/affinity.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"

namespace weir::monitor {
namespace {

std::string SilenceOf(const wire::OsdInfo& osd, const std::map<uint32_t, std::string>& silence) {
  const auto why = silence.find(osd.id());
  return fmt::format("osd.{} at {} does not answer{}{}", osd.id(), osd.endpoint(),
                     why == silence.end() ? "" : ": ", why == silence.end() ? "" : why->second);
}

void AddTroublesOf(uint32_t id, const wire::OsdStatsReply& stats,
                   std::vector<std::string>* troubles) {
  if (stats.checksum_errors() > 0) {
    troubles->push_back(fmt::format("osd.{} found {} damaged blocks: see its log for the objects",
                                    id, stats.checksum_errors()));
  }
  if (stats.disk().slow()) {
    troubles->push_back(fmt::format(
        "osd.{} is slower than promised: it gives {}, its token rate is {} (osdctl profile {} "
        "--apply, or another disk)",
        id, FormatRate(stats.disk().bytes_per_s()), FormatRate(stats.base_token_rate()), id));
  }
  if (stats.bulk_let_go()) {
    troubles->push_back(
        fmt::format("osd.{} does not hold bulk back for latency bounds: what keeps its processors "
                    "busy is not the bulk that it serves (see top, or give it more processors)",
                    id));
  }
}

// Of one class: what its mounts used of the OSDs, in device seconds a second, by session.
using UseOfMounts = std::map<uint64_t, CoordinatorUse>;

// Who uses less of a device is not worth a word.
constexpr double kLeastUse = 0.05;
// A shorter look would take for a habit what is one file.
constexpr double kShortestLook = 4;

// False where a mount may be missing.
bool AddUse(OsdId osd, const wire::FlowsOfClass& flows, UseOfMounts* mounts) {
  if (flows.window_s() < kShortestLook) return false;
  if (flows.users_seen() > static_cast<uint32_t>(flows.users_size())) return false;
  for (const wire::FlowStats& user : flows.users()) {
    if (user.session() == 0) continue;
    (*mounts)[user.session()].osds[osd] +=
        static_cast<double>(user.device_us()) / 1e6 / flows.window_s();
  }
  return true;
}

bool IsSmall(const CoordinatorUse& one) {
  double sum = 0;
  for (const auto& [osd, use] : one.osds) sum += use;
  return sum < kLeastUse;
}

void AddNearFull(const wire::ClusterMap& wire_map, std::vector<std::string>* notes) {
  if (!wire_map.near_full()) return;
  const Result<ClusterMap> map = FromWire(wire_map);
  if (!map.ok()) return;
  for (const OsdId id : NearFullOsds(*map)) {
    const OsdEntry& osd = map->osds.at(id);
    const uint64_t free = osd.capacity_bytes - std::min(osd.capacity_bytes, osd.used_bytes);
    notes->push_back(
        fmt::format("osd.{} is nearly full, {} of {} are free: closes wait for the "
                    "disks",
                    id.value, FormatSize(free), FormatSize(osd.capacity_bytes)));
  }
}

}  // namespace

std::vector<std::string> NotesOf(const wire::StatusReply& status,
                                 const std::map<uint32_t, wire::OsdStatsReply>& osds) {
  std::map<uint32_t, UseOfMounts> classes;
  std::set<uint32_t> unclear;
  for (const auto& [osd, stats] : osds) {
    for (const wire::ClassStats& row : stats.classes()) {
      if (!row.has_flows()) continue;
      if (!AddUse(OsdId(osd), row.flows(), &classes[row.class_id()])) {
        unclear.insert(row.class_id());
      }
    }
  }
  std::vector<std::string> notes;
  AddNearFull(status.map(), &notes);
  for (const wire::ClassInfo& info : status.map().classes()) {
    const auto found = classes.find(info.id());
    if (found == classes.end() || unclear.contains(info.id())) continue;
    std::vector<CoordinatorUse> mounts;
    for (const auto& mount : status.mounts()) {
      const auto use = found->second.find(mount.session());
      if (use == found->second.end() || IsSmall(use->second)) continue;
      mounts.push_back({mount.client_name(), use->second.osds});
    }
    if (const auto anomaly = AffinityAnomaly(std::move(mounts))) {
      notes.push_back(fmt::format("class {}: {}", info.name(), *anomaly));
    }
  }
  return notes;
}

std::vector<std::string> TroublesOf(const wire::StatusReply& status,
                                    const std::map<uint32_t, wire::OsdStatsReply>& osds,
                                    const std::map<uint32_t, std::string>& silence) {
  std::vector<std::string> troubles;
  if (status.map().osds().empty()) {
    troubles.emplace_back("there is no OSD: nothing can be stored yet");
  }
  for (const wire::OsdInfo& osd : status.map().osds()) {
    const auto stats = osds.find(osd.id());
    if (!osd.up() && osd.endpoint().empty()) {
      troubles.push_back(fmt::format(
          "osd.{} was formatted and never served: start weir-osd on its disk", osd.id()));
    } else if (!osd.up()) {
      troubles.push_back(fmt::format("osd.{} is down (last seen at {})", osd.id(), osd.endpoint()));
    } else if (stats == osds.end()) {
      troubles.push_back(SilenceOf(osd, silence));
    } else {
      AddTroublesOf(osd.id(), stats->second, &troubles);
    }
  }
  for (const std::string& warning : status.warnings()) troubles.push_back(warning);
  return troubles;
}

}  // namespace weir::monitor
