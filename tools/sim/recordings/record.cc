#include "tools/sim/recordings/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "osd/decisions/recording.h"
#include "osd/decisions/replay.h"
#include "tools/sim/recordings/workload.h"

namespace weir::sim {
namespace {

using osd::Event;
using osd::ServedGap;

constexpr std::string_view kLive = "live-";

std::string RowOf(const std::string& name, const std::string& covers,
                  const std::vector<Event>& events) {
  const auto count = [&events](auto counts) {
    return std::count_if(events.begin(), events.end(), counts);
  };
  const auto arrived = count([](const Event& e) { return e.kind == Event::Kind::kEnqueue; });
  const auto started =
      count([](const Event& e) { return e.kind == Event::Kind::kPull && e.request != 0; });
  const Duration lasted = events.back().now - events.front().now;
  const ServedGap gap = osd::LargestGap(
      osd::ServedOf(events), osd::ServedOf(osd::ReplayInputs(events, osd::InputOrder::kOwn)),
      osd::kRequestsFree);
  return fmt::format("| `{}` | {} | {} | {} | {:.1f} | {:.1f} |\n", name, covers, arrived, started,
                     ToSeconds(lasted), 100 * gap.part);
}

std::vector<std::string> RecordingsIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory, error)) {
    if (file.path().extension() == ".rec") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Status RecordAll(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::string table =
      "# The recordings\n\nWritten by `weir-sim record`; see README.md.\n\n"
      "| file | covers | requests | decisions | seconds | moved, % |\n"
      "|---|---|---|---|---|---|\n";
  for (const Workload& workload : AllWorkloads()) {
    Session session;
    workload.run(session);
    for (const auto& [part, keeper] : session.kept()) {
      const std::string name = part.empty() ? workload.name : workload.name + "-" + part;
      const std::string path = fmt::format("{}/{}.rec", directory, name);
      WEIR_RETURN_IF_ERROR(osd::SaveRecording(path, keeper->events()));
      table += RowOf(name, workload.covers, keeper->events());
    }
  }
  for (const std::string& name : RecordingsIn(directory)) {
    if (!name.starts_with(kLive)) continue;
    WEIR_ASSIGN_OR_RETURN(const std::vector<Event> events,
                          osd::LoadRecording(fmt::format("{}/{}.rec", directory, name)));
    table += RowOf(name, "a real OSD under fio (record_live.py)", events);
  }
  std::ofstream file(directory + "/TABLE.md");
  file << table;
  if (file.flush()) return Status::Ok();
  return {ErrorCode::kIo, fmt::format("cannot write '{}/TABLE.md'", directory)};
}

Result<std::vector<Compared>> CompareRecordings(const std::string& recorded,
                                                const std::string& now) {
  std::vector<Compared> all;
  for (const std::string& name : RecordingsIn(recorded)) {
    if (name.starts_with(kLive)) continue;
    WEIR_ASSIGN_OR_RETURN(const std::vector<Event> before,
                          osd::LoadRecording(fmt::format("{}/{}.rec", recorded, name)));
    WEIR_ASSIGN_OR_RETURN(const std::vector<Event> after,
                          osd::LoadRecording(fmt::format("{}/{}.rec", now, name)));
    all.push_back(
        {name, osd::LargestGap(osd::ServedOf(before), osd::ServedOf(after), osd::kRequestsFree)});
  }
  return all;
}

}  // namespace weir::sim
