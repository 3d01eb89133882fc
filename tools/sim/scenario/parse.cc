#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/units.h"
#include "osd/qos/control/bottleneck_solver.h"
#include "tools/sim/devices/hdd.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/devices/ssd.h"
#include "tools/sim/devices/tiered.h"
#include "tools/sim/scenario/parser.h"

namespace weir::sim {
namespace {

// Limits that keep a slip of the pen from filling the memory.
constexpr Duration kLongest = std::chrono::hours(24);
constexpr int64_t kMostWindows = 100'000;

}  // namespace

std::string Parser::Beside(const std::string& path) const {
  return (std::filesystem::path(file_).parent_path() / path).string();
}

Status Parser::EachTable(std::string_view name, TakeTable take, Scenario* scenario) {
  const toml::node* node = root_.get(name);
  if (node == nullptr) return Status::Ok();
  const toml::array* array = node->as_array();
  if (array == nullptr || !array->is_array_of_tables()) {
    return {ErrorCode::kInvalid, fmt::format("{}:{}: '{}' must be written [[{}]], once for each",
                                             file_, node->source().begin.line, name, name)};
  }
  size_t number = 0;
  for (const toml::node& entry : *array) {
    TomlTable table(entry.as_table(), file_, fmt::format("{} {}", name, ++number));
    WEIR_RETURN_IF_ERROR((this->*take)(&table, scenario));
    WEIR_RETURN_IF_ERROR(table.Done());
  }
  return Status::Ok();
}

Status Parser::TakeTop(Scenario* scenario) {
  TomlTable top(&root_, file_, "the scenario");
  for (const char* name : {"device", "scheduler", "class", "workload"}) (void)top.Has(name);
  scenario->duration = top.Time("duration", scenario->duration);
  scenario->window = top.Time("window", scenario->window);
  scenario->seed = static_cast<uint64_t>(top.Whole("seed", 1, 0, INT64_MAX));
  scenario->mounts_hold_limits =
      top.Word("limits_held_by", {"mounts", "osds"}, "mounts") == "mounts";
  if (scenario->duration <= Duration(0) || scenario->duration > kLongest) {
    top.Fail("duration", "must be longer than nothing and at most a day");
  }
  if (scenario->window <= Duration(0) || scenario->window > scenario->duration) {
    top.Fail("window", "must be longer than nothing and at most the duration");
  } else if (scenario->duration / scenario->window > kMostWindows) {
    top.Fail("window", fmt::format("makes more than {} windows of the duration; take a longer one",
                                   kMostWindows));
  }
  return top.Done();
}

DeviceFactory Parser::DiskOf(TomlTable* table) {
  const std::string disk = table->Word("disk", HddModelNames(), "dtla-307075");
  const auto disks = static_cast<int>(table->Whole("disks", 1, 1, 64));
  const uint64_t unit = table->Size("stripe_unit", 64 * kKiB);
  if (unit < 512) table->Fail("stripe_unit", "must be at least 512 bytes");
  const auto names = HddModelNames();
  if (std::find(names.begin(), names.end(), disk) == names.end() || unit < 512) return Flat(1);
  return disks == 1 ? Hdd(HddModelOf(disk)) : Raid0(HddModelOf(disk), disks, unit);
}

DeviceFactory Parser::RecordedOf(TomlTable* table) {
  const std::string path = Beside(table->Text("file", ""));
  std::ifstream file(path);
  std::vector<double> seconds;
  for (double value = 0; file >> value;) seconds.push_back(value);
  const bool good = std::all_of(seconds.begin(), seconds.end(), [](double s) { return s > 0; });
  if (seconds.empty() || !good || !file.eof()) {
    table->Fail("file", fmt::format("'{}' must be a file of service times in s, one a line", path));
    return Flat(1);
  }
  return Recorded(std::move(seconds));
}

DeviceFactory Parser::DeviceOf(TomlTable* table) {
  const std::string model =
      table->Word("model", {"flat", "slots", "exponential", "hdd", "ssd", "recorded"}, "flat");
  if (model == "hdd") return DiskOf(table);
  if (model == "recorded") return RecordedOf(table);
  if (model == "exponential") return Exponential(table->Number("iops", 100, .1, 1e9));
  if (model == "ssd") {
    SsdModel ssd;
    ssd.channels = static_cast<int>(table->Whole("channels", ssd.channels, 1, 1024));
    ssd.buffer = table->Size("buffer", ssd.buffer);
    return Ssd(ssd);
  }
  const uint64_t rate = table->Rate("rate", 100 * kMiB);
  if (rate < 1024 || rate == kUnlimitedRate) {
    table->Fail("rate", "a device needs a rate of at least 1KiB/s");
  }
  const auto bytes_per_s = static_cast<double>(rate);
  if (model == "flat") return Flat(bytes_per_s);
  return Slots(static_cast<int>(table->Whole("slots", 20, 1, 4096)), bytes_per_s);
}

// Each tier is a device of its own behind the one scheduler of its OSD.
Status Parser::TakeTiers(TomlTable* table, DeviceSpec* device) {
  std::vector<DeviceFactory> parts;
  for (TomlTable& tier : table->Tables("tiers", "tier")) {
    parts.push_back(DeviceOf(&tier));
    device->tiers.push_back({tier.Text("name", fmt::format("tier.{}", device->tiers.size())),
                             tier.Number("capacity", 0, 0, 1e9)});
    WEIR_RETURN_IF_ERROR(tier.Done());
  }
  if (parts.size() < 2 || parts.size() > osd::qos::kTiersMax) {
    table->Fail("tiers", fmt::format("must be 2 to {}", osd::qos::kTiersMax));
  } else {
    device->make = Tiered(std::move(parts));
  }
  return Status::Ok();
}

Status Parser::TakeDevice(TomlTable* table, Scenario* scenario) {
  DeviceSpec device;
  if (table->Has("tiers")) {
    WEIR_RETURN_IF_ERROR(TakeTiers(table, &device));
  } else {
    device.make = DeviceOf(table);
  }
  const std::string name = table->Text("name", "");
  const int64_t count = table->Whole("count", 1, 1, 10'000);
  for (int64_t i = 0; i < count; ++i) {
    const std::string numbered = fmt::format("osd.{}", scenario->devices.size());
    device.name = name.empty() || count > 1 ? numbered : name;
    scenario->devices.push_back(device);
  }
  return Status::Ok();
}

Result<Scenario> Parser::Parse() {
  Scenario scenario;
  WEIR_RETURN_IF_ERROR(TakeTop(&scenario));
  WEIR_RETURN_IF_ERROR(TakeScheduler(&scenario));
  WEIR_RETURN_IF_ERROR(EachTable("device", &Parser::TakeDevice, &scenario));
  WEIR_RETURN_IF_ERROR(EachTable("class", &Parser::TakeClass, &scenario));
  if (scenario.devices.empty()) {
    return {ErrorCode::kInvalid, fmt::format("{}: there is no [[device]]", file_)};
  }
  WEIR_RETURN_IF_ERROR(EachTable("workload", &Parser::TakeWorkload, &scenario));
  if (scenario.workloads.empty()) {
    return {ErrorCode::kInvalid, fmt::format("{}: there is no [[workload]]", file_)};
  }
  return scenario;
}

Result<Scenario> ParseScenario(std::string_view text, const std::string& name) {
  try {
    const toml::table root = toml::parse(text, name);
    return Parser(root, name).Parse();
  } catch (const toml::parse_error& error) {
    return {ErrorCode::kInvalid,
            fmt::format("{}:{}: {}", name, error.source().begin.line, error.description())};
  }
}

Result<Scenario> LoadScenario(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    return {ErrorCode::kNotFound, fmt::format("there is no scenario file '{}'", path)};
  }
  std::ostringstream text;
  text << file.rdbuf();
  return ParseScenario(text.str(), path);
}

}  // namespace weir::sim
