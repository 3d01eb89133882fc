#include "common/monitor/troubles.h"

#include <fmt/format.h>

#include "common/base/units.h"
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
  for (const wire::ClassStats& row : stats.classes()) {
    if (!row.bound_futile()) continue;
    troubles->push_back(fmt::format(
        "osd.{} cannot keep the latency bound of '{}': it waits {}, and to hold others back did "
        "not "
        "help (osdctl why {})",
        id, row.name(), FormatDuration(std::chrono::microseconds(row.bound_quantile_us())),
        row.name()));
  }
}

}  // namespace

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
