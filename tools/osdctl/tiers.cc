#include "tools/osdctl/tiers.h"

#include <fmt/format.h>

#include "common/base/units.h"
#include "tools/cli/table.h"
#include "tools/osdctl/stat_document.h"

namespace weir::osdctl {

Json TiersDocument(const wire::ClusterMap& map, const wire::OsdStatsReply& stats) {
  Json tiers = Json::array();
  for (const auto& tier : stats.tiers()) {
    Json classes = Json::array();
    for (const auto& row : tier.classes()) {
      classes.push_back({{"class", ClassName(map, row.class_id())},
                         {"id", row.class_id()},
                         {"served_ops", row.served_ops()},
                         {"served_bytes", row.served_bytes()},
                         {"queued_ops", row.queued_ops()},
                         {"p50_us", row.latency().p50_us()},
                         {"p99_us", row.latency().p99_us()}});
    }
    tiers.push_back({{"tier", tier.name()},
                     {"capacity_bytes", tier.capacity_bytes()},
                     {"used_bytes", tier.used_bytes()},
                     {"objects", tier.objects()},
                     {"token_rate_bytes_per_s", tier.token_rate()},
                     {"device_bytes_per_s", tier.device_bytes_per_s()},
                     {"busy", tier.busy()},
                     {"requests_per_s", tier.requests_per_s()},
                     {"classes", classes}});
  }
  return tiers;
}

Json AllocationDocument(const wire::ClusterMap& map, const wire::OsdStatsReply& stats) {
  Json classes = Json::array();
  for (const auto& row : stats.allocation()) {
    Json hits = Json::object();
    for (int k = 0; k < std::min(row.hits_size(), stats.tiers_size()); ++k) {
      hits[stats.tiers(k).name()] = row.hits(k);
    }
    Json entry = {{"class", ClassName(map, row.class_id())},
                  {"hits", hits},
                  {"bottleneck", nullptr},
                  {"fair_requests_per_s", row.fair_rate()},
                  {"requests_per_s", row.rate()},
                  {"weight", row.weight()}};
    if (!row.bottleneck().empty()) entry["bottleneck"] = row.bottleneck();
    classes.push_back(entry);
  }
  return classes;
}

std::string TierTables(const wire::ClusterMap& map, const wire::OsdStatsReply& stats) {
  cli::Table tiers(
      {"TIER", ">CAPACITY", ">USED", ">TOKEN RATE", ">DEVICE", ">BUSY", ">REQUESTS/s"});
  std::vector<std::string> headings{"CLASS"};
  for (const auto& tier : stats.tiers()) {
    headings.push_back(fmt::format(">ON {}", tier.name()));
    tiers.AddRow({tier.name(), FormatSize(tier.capacity_bytes()), FormatSize(tier.used_bytes()),
                  FormatRate(tier.token_rate()), FormatRate(tier.device_bytes_per_s()),
                  fmt::format("{:.0f}%", tier.busy() * 100),
                  fmt::format("{:.0f}", tier.requests_per_s())});
  }
  for (const char* heading : {"BOTTLENECK", ">FAIR/s", ">GETS/s", ">WEIGHT"}) {
    headings.emplace_back(heading);
  }
  cli::Table classes(headings);
  for (const auto& row : stats.allocation()) {
    if (row.bottleneck().empty()) continue;
    std::vector<std::string> cells{ClassName(map, row.class_id())};
    for (const double part : row.hits()) cells.push_back(fmt::format("{:.1f}%", part * 100));
    cells.insert(cells.end(),
                 {row.bottleneck(), fmt::format("{:.0f}", row.fair_rate()),
                  fmt::format("{:.0f}", row.rate()), fmt::format("{:.3g}", row.weight())});
    classes.AddRow(std::move(cells));
  }
  return tiers.Render() + "\n" + classes.Render();
}

}  // namespace weir::osdctl
