#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/units.h"
#include "tools/sim/devices/hdd.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/devices/ssd.h"
#include "tools/sim/scenario/scenario.h"
#include "tools/sim/scenario/toml_table.h"
#include "tools/sim/workloads/arrivals.h"
#include "tools/sim/workloads/shapes.h"
#include "tools/sim/workloads/stand_ins.h"
#include "tools/sim/workloads/trace.h"

namespace weir::sim {
namespace {

constexpr double kMost = 1e9;
constexpr Duration kLongest = std::chrono::hours(24);

class Parser {
 public:
  Parser(const toml::table& root, std::string file) : root_(root), file_(std::move(file)) {}

  Result<Scenario> Parse();

 private:
  using TakeTable = Status (Parser::*)(TomlTable*, Scenario*);

  // Each table of [[name]], by `take`.
  Status EachTable(std::string_view name, TakeTable take, Scenario* scenario);
  Status TakeTop(Scenario* scenario);
  Status TakeScheduler(Scenario* scenario);
  Status TakeDevice(TomlTable* table, Scenario* scenario);
  Status TakeClass(TomlTable* table, Scenario* scenario);
  Status TakeWorkload(TomlTable* table, Scenario* scenario);

  DeviceFactory DeviceOf(TomlTable* table);
  DeviceFactory DiskOf(TomlTable* table);
  DeviceFactory RecordedOf(TomlTable* table);
  void TakeArrivals(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload);
  void TakeTrace(TomlTable* table, WorkloadSpec* workload);
  void TakeStandIn(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload);
  void TakeShape(TomlTable* table, WorkloadSpec* workload);
  void TakeRoute(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload);
  void TakeChanges(TomlTable* table, WorkloadSpec* workload);
  ClassId ClassOf(TomlTable* table, const Scenario& scenario);
  [[nodiscard]] std::string Beside(const std::string& path) const;

  const toml::table& root_;
  std::string file_;
};

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
  if (scenario->duration <= Duration(0) || scenario->duration > kLongest) {
    top.Fail("duration", "must be longer than nothing and at most a day");
  }
  if (scenario->window <= Duration(0) || scenario->window > scenario->duration) {
    top.Fail("window", "must be longer than nothing and at most the duration");
  }
  return top.Done();
}

template <typename Kind>
void TakePiece(TomlTable* table, std::string_view key, Kind* piece,
               Result<Kind> (*parse)(std::string_view)) {
  if (!table->Has(key)) return;
  const Result<Kind> kind = parse(table->Text(key, ""));
  if (kind.ok()) {
    *piece = *kind;
  } else {
    table->Fail(key, kind.status().message());
  }
}

Status Parser::TakeScheduler(Scenario* scenario) {
  const toml::node* node = root_.get("scheduler");
  if (node == nullptr) return Status::Ok();
  if (!node->is_table()) {
    return {ErrorCode::kInvalid, fmt::format("{}:{}: 'scheduler' must be written [scheduler]",
                                             file_, node->source().begin.line)};
  }
  TomlTable table(node->as_table(), file_, "scheduler");
  SchedulerConfig& config = scenario->scheduler;
  config.token_rate = table.Rate("token_rate", 0);
  if (table.Has("best_effort_min")) config.best_effort_min = table.Rate("best_effort_min", 0);
  config.depth = static_cast<uint32_t>(table.Whole("depth", 0, 0, 4096));
  if (table.Has("profile")) {
    const auto applied = ApplyProfile(table.Text("profile", "unified"), config);
    if (applied.ok()) {
      config = *applied;
    } else {
      table.Fail("profile", applied.status().message());
    }
  }
  TakePiece(&table, "gate", &config.gate, ParseGate);
  TakePiece(&table, "surplus", &config.surplus, ParseSurplus);
  TakePiece(&table, "sharing", &config.sharing, ParseSharing);
  TakePiece(&table, "dispatch", &config.dispatch, ParseDispatch);
  TakePiece(&table, "cost", &config.cost, ParseCost);
  if (table.Has("maximizer")) {
    const auto* flag = node->as_table()->get("maximizer")->as_boolean();
    if (flag == nullptr) table.Fail("maximizer", "must be true or false");
    config.maximizer = flag != nullptr && flag->get();
  }
  return table.Done();
}

DeviceFactory Parser::DiskOf(TomlTable* table) {
  const std::string disk = table->Word("disk", HddModelNames(), "dtla-307075");
  const auto disks = static_cast<int>(table->Whole("disks", 1, 1, 64));
  const uint64_t unit = table->Size("stripe_unit", 64 * kKiB);
  if (unit == 0) table->Fail("stripe_unit", "must be above 0");
  const auto names = HddModelNames();
  if (std::find(names.begin(), names.end(), disk) == names.end() || unit == 0) return Flat(1);
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
      table->Word("model", {"flat", "slots", "hdd", "ssd", "recorded"}, "flat");
  if (model == "hdd") return DiskOf(table);
  if (model == "recorded") return RecordedOf(table);
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

Status Parser::TakeDevice(TomlTable* table, Scenario* scenario) {
  const DeviceFactory make = DeviceOf(table);
  const std::string name = table->Text("name", "");
  const int64_t count = table->Whole("count", 1, 1, 10'000);
  for (int64_t i = 0; i < count; ++i) {
    const std::string numbered = fmt::format("osd.{}", scenario->devices.size());
    scenario->devices.push_back({name.empty() || count > 1 ? numbered : name, make});
  }
  return Status::Ok();
}

Status Parser::TakeClass(TomlTable* table, Scenario* scenario) {
  ClassSpec spec;
  spec.id = ClassId(kFirstUserClass.value + static_cast<uint32_t>(scenario->classes.size()));
  spec.name = table->Text("name", "");
  if (spec.name.empty()) table->Fail("name", "a class needs a name");
  for (const ClassSpec& other : scenario->classes) {
    if (other.name == spec.name) table->Fail("name", fmt::format("'{}' is there twice", spec.name));
  }
  spec.weight = table->Number("weight", 1, 1e-6, 1e6);
  spec.min_weight = table->Number("min_weight", spec.weight / 10, 1e-9, spec.weight);
  if (table->Has("limit")) spec.limit_bytes_per_s = table->Rate("limit", 0);
  if (table->Has("reservation") || table->Has("iops")) {
    Reservation reservation;
    reservation.bytes_per_s = table->Rate("reservation", 0);
    reservation.iops = static_cast<uint64_t>(table->Whole("iops", 0, 0, 1'000'000'000));
    spec.reservation = reservation;
    TakePiece(table, "scope", &spec.reservation->scope, ParseScope);
    if (table->Has("reservation_for")) {
      spec.reservation_ends = TimePoint{0} + table->Time("reservation_for", Duration(0));
    }
  } else {
    for (const char* key : {"scope", "reservation_for"}) {
      if (table->Has(key)) table->Fail(key, "needs a reservation");
    }
  }
  scenario->classes.push_back(std::move(spec));
  return Status::Ok();
}

ClassId Parser::ClassOf(TomlTable* table, const Scenario& scenario) {
  std::vector<std::string_view> names{"best-effort"};
  for (const ClassSpec& spec : scenario.classes) names.push_back(spec.name);
  const std::string name = table->Word("class", names, "best-effort");
  for (const ClassSpec& spec : scenario.classes) {
    if (spec.name == name) return spec.id;
  }
  return kBestEffort;
}

void Parser::TakeTrace(TomlTable* table, WorkloadSpec* workload) {
  const std::string path = Beside(table->Text("trace", ""));
  const std::string format = table->Word("format", {"spc", "fio"}, "spc");
  Result<Trace> trace = ReadTrace(path, format);
  if (!trace.ok()) {
    table->Fail("trace", trace.status().message());
    return;
  }
  PlayTrace(*std::move(trace), table->Number("speed", 1, 1e-6, 1e6), &workload->options);
}

void Parser::TakeStandIn(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload) {
  const auto names = StandInNames();
  const std::string name = table->Word("stand_in", names, "");
  if (std::find(names.begin(), names.end(), name) == names.end()) return;
  StandIn how;
  how.speed = table->Number("speed", 1, 1e-6, 1e6);
  how.length = scenario.duration;
  Prng prng(MixHash(scenario.seed, scenario.workloads.size()));
  PlayStandIn(name, how, &prng, &workload->options);
}

void Parser::TakeShape(TomlTable* table, WorkloadSpec* workload) {
  ShapeOptions shape;
  std::tie(shape.least_bytes, shape.most_bytes) = table->Sizes("size", 64 * kKiB);
  shape.reads = table->Number("reads", 0, 0, 1);
  shape.locality = table->Number("locality", 0, 0, 1);
  shape.start = table->Size("start_address", 0);
  shape.span = table->Size("span", 1ull << 30);
  shape.zipf = table->Number("zipf", 0, 0, 10);
  if (shape.span < shape.most_bytes) table->Fail("span", "is smaller than a request");
  if (shape.least_bytes == 0) table->Fail("size", "must be above 0");
  workload->options.bytes = (shape.least_bytes + shape.most_bytes) / 2;
  workload->options.shape = MakeShape(shape);
}

void Parser::TakeArrivals(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload) {
  if (table->Has("trace")) return TakeTrace(table, workload);
  if (table->Has("stand_in")) return TakeStandIn(table, scenario, workload);
  TakeShape(table, workload);
  LoadOptions& options = workload->options;
  options.outstanding = static_cast<int>(table->Whole("threads", 4, 0, 100'000));
  options.think = table->Time("think", Duration(0));
  if (table->Has("pace")) options.pace = static_cast<double>(table->Rate("pace", 0));
  if (!table->Has("arrivals")) {
    if (table->Has("burstiness")) table->Fail("burstiness", "needs arrivals");
    return;
  }
  const double per_s = table->Number("arrivals", 1, 1e-6, kMost);
  const double bias = table->Number("burstiness", 0, .5, .99);
  Prng prng(MixHash(scenario.seed, scenario.workloads.size()));
  options.gap =
      table->Has("burstiness") ? BModel(per_s, bias, scenario.duration, &prng) : Poisson(per_s);
}

// A request goes to one of `devices`, by chance with these shares, through the coordinators in
// turn.
void Parser::TakeRoute(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload) {
  std::vector<size_t> devices;
  for (double number : table->Numbers("devices")) {
    if (number < 0 || number >= static_cast<double>(scenario.devices.size()) ||
        number != std::floor(number)) {
      table->Fail("devices", fmt::format("there is no device {:g}; there are 0 to {}", number,
                                         scenario.devices.size() - 1));
      return;
    }
    devices.push_back(static_cast<size_t>(number));
  }
  if (devices.empty()) devices.push_back(0);
  std::vector<double> shares = table->Numbers("shares");
  if (shares.empty()) shares.assign(devices.size(), 1);
  double sum = 0;
  for (double share : shares) sum += share < 0 ? -kMost : share;
  if (shares.size() != devices.size() || !(sum > 0)) {
    table->Fail("shares", fmt::format("must be {} numbers, not below 0, one for each of devices",
                                      devices.size()));
    return;
  }
  const auto coordinators = static_cast<size_t>(table->Whole("coordinators", 1, 1, 100'000));
  const auto prng =
      std::make_shared<Prng>(MixHash(scenario.seed, 1000 + scenario.workloads.size()));
  workload->options.route = [=](uint64_t n) {
    double dice = prng->Real() * sum;
    size_t at = 0;
    while (at + 1 < shares.size() && dice >= shares[at]) dice -= shares[at++];
    return std::pair<size_t, size_t>(devices[at], n % coordinators);
  };
}

void Parser::TakeChanges(TomlTable* table, WorkloadSpec* workload) {
  workload->start = table->Time("start", Duration(0));
  if (table->Has("stop")) workload->stop = table->Time("stop", Duration(0));
  if (workload->stop && *workload->stop <= workload->start) {
    table->Fail("stop", "must be after start");
  }
  const bool turns = table->Has("on") || table->Has("off");
  const bool sine = table->Has("period") || table->Has("low") || table->Has("high");
  if ((turns || sine) && workload->options.gap) {
    table->Fail(turns ? "on" : "period", "changes threads, which only a closed loop has");
  }
  if (turns) {
    workload->on = table->Time("on", std::chrono::seconds(1));
    workload->off = table->Time("off", std::chrono::seconds(1));
    if (*workload->on <= Duration(0) || *workload->off <= Duration(0)) {
      table->Fail("on", "on and off must be longer than nothing");
    }
  }
  if (sine) {
    workload->period = table->Time("period", std::chrono::seconds(60));
    workload->low = static_cast<int>(table->Whole("low", 0, 0, 100'000));
    workload->high = static_cast<int>(table->Whole("high", 10, workload->low, 100'000));
    if (*workload->period <= Duration(0)) table->Fail("period", "must be longer than nothing");
  }
}

Status Parser::TakeWorkload(TomlTable* table, Scenario* scenario) {
  WorkloadSpec workload;
  workload.class_id = ClassOf(table, *scenario);
  workload.options.class_id = workload.class_id;
  workload.name = table->Text("name", table->Text("class", "best-effort"));
  TakeArrivals(table, *scenario, &workload);
  TakeRoute(table, *scenario, &workload);
  TakeChanges(table, &workload);
  scenario->workloads.push_back(std::move(workload));
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

}  // namespace

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
