#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/sim/scenario/parser.h"
#include "tools/sim/workloads/arrivals.h"
#include "tools/sim/workloads/shapes.h"
#include "tools/sim/workloads/stand_ins.h"
#include "tools/sim/workloads/trace.h"

namespace weir::sim {
namespace {

// Limits that keep a slip of the pen from filling the memory.
constexpr Duration kShortestTurn = std::chrono::milliseconds(1);
constexpr double kMostArrivals = 2e7;
constexpr uint64_t kLargestIo = 1ull << 30;
constexpr uint64_t kLargestAddress = 1ull << 60;

}  // namespace

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
  const std::string format = table->Word("format", TraceFormats(), "spc");
  Result<Trace> trace = ReadTrace(path, format);
  if (!trace.ok()) {
    table->Fail("trace", trace.status().message());
    return;
  }
  if (table->Has("unit")) {
    const int64_t unit = table->Whole("unit", 0, 0, UINT32_MAX);
    std::erase_if(*trace, [unit](const TraceRecord& record) { return record.unit != unit; });
  }
  if (trace->empty()) return table->Fail("trace", fmt::format("'{}' has no requests", path));
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
  if (shape.least_bytes == 0 || shape.most_bytes > kLargestIo) {
    table->Fail("size", "must be above 0 and at most 1GiB");
  }
  if (shape.start > kLargestAddress || shape.span > kLargestAddress) {
    table->Fail("span", "start_address and span must be at most 1EiB");
  }
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
  for (const char* key : {"threads", "think", "pace"}) {
    if (table->Has(key)) table->Fail(key, "is of a closed loop; with arrivals nobody waits");
  }
  const double most = kMostArrivals / std::max(1.0, ToSeconds(scenario.duration));
  const double per_s = table->Number("arrivals", 1, 1e-6, most);
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
  for (double share : shares) sum += share;
  const bool negative = std::any_of(shares.begin(), shares.end(), [](double s) { return s < 0; });
  if (shares.size() != devices.size() || negative || !(sum > 0)) {
    table->Fail("shares", fmt::format("must be {} numbers, not below 0, one for each of devices",
                                      devices.size()));
    return;
  }
  const auto coordinators = static_cast<size_t>(table->Whole("coordinators", 1, 1, 100'000));
  TakeHits(table, scenario, devices, workload);
  const auto prng =
      std::make_shared<Prng>(MixHash(scenario.seed, 1000 + scenario.workloads.size()));
  workload->options.route = [=](uint64_t n) {
    double dice = prng->Real() * sum;
    size_t at = 0;
    while (at + 1 < shares.size() && dice >= shares[at]) dice -= shares[at++];
    return std::pair<size_t, size_t>(devices[at], n % coordinators);
  };
}

// Which part of the requests goes to each tier.
void Parser::TakeHits(TomlTable* table, const Scenario& scenario,
                      const std::vector<size_t>& devices, WorkloadSpec* workload) {
  if (!table->Has("tiers")) return;
  const std::vector<double> parts = table->Numbers("tiers");
  double sum = 0;
  for (double part : parts) sum += part;
  const bool negative = std::any_of(parts.begin(), parts.end(), [](double p) { return p < 0; });
  for (size_t device : devices) {
    const size_t tiers = scenario.devices[device].tiers.size();
    if (tiers == parts.size() && !negative && sum > 0) continue;
    return table->Fail("tiers", fmt::format("must be {} numbers, not below 0, one for each tier of "
                                            "device {}",
                                            tiers, device));
  }
  workload->options.shape = [inner = workload->options.shape, parts, sum](Prng& prng, uint64_t n,
                                                                          Io* io) {
    if (inner) inner(prng, n, io);
    double dice = prng.Real() * sum;
    io->tier = 0;
    while (io->tier + 1 < parts.size() && dice >= parts[io->tier]) dice -= parts[io->tier++];
  };
}

void Parser::TakeChanges(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload) {
  workload->start = table->Time("start", Duration(0));
  for (size_t i = 0; i < scenario.classes.size(); ++i) {
    if (scenario.classes[i].id != workload->class_id) continue;
    workload->start = std::max(workload->start, scenario.admissions[i].at);
  }
  if (workload->start >= scenario.duration) {
    table->Fail("start", "must be before the scenario ends (duration)");
  }
  if (table->Has("stop")) workload->stop = table->Time("stop", Duration(0));
  if (workload->stop && *workload->stop <= workload->start) {
    table->Fail("stop", "must be after start, and after its class asks");
  }
  const bool turns = table->Has("on") || table->Has("off");
  const bool sine = table->Has("period") || table->Has("low") || table->Has("high");
  if ((turns || sine) && workload->options.gap) {
    table->Fail(turns ? "on" : "period", "changes threads, which only a closed loop has");
  }
  if (turns) {
    workload->on = table->Time("on", std::chrono::seconds(1));
    workload->off = table->Time("off", std::chrono::seconds(1));
    if (*workload->on < kShortestTurn || *workload->off < kShortestTurn) {
      table->Fail("on", "on and off must be at least 1ms");
    }
  }
  if (sine) {
    workload->period = table->Time("period", std::chrono::seconds(60));
    workload->low = static_cast<int>(table->Whole("low", 0, 0, 100'000));
    workload->high = static_cast<int>(table->Whole("high", 10, workload->low, 100'000));
    if (*workload->period < 100 * kShortestTurn) table->Fail("period", "must be at least 100ms");
  }
}

void Parser::TakeTransaction(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload) {
  if (!table->Has("transaction")) return;
  int64_t known = 0;
  for (const ClassSpec& spec : scenario.classes) {
    if (spec.id == workload->class_id) known = static_cast<int64_t>(spec.transactions.size());
  }
  if (known == 0) return table->Fail("transaction", "its class has no transactions");
  workload->options.transaction = static_cast<uint32_t>(table->Whole("transaction", 1, 1, known));
}

Status Parser::TakeWorkload(TomlTable* table, Scenario* scenario) {
  WorkloadSpec workload;
  workload.class_id = ClassOf(table, *scenario);
  workload.options.class_id = workload.class_id;
  workload.name = table->Text("name", table->Text("class", "best-effort"));
  TakeArrivals(table, *scenario, &workload);
  TakeTransaction(table, *scenario, &workload);
  TakeRoute(table, *scenario, &workload);
  TakeChanges(table, *scenario, &workload);
  scenario->workloads.push_back(std::move(workload));
  return Status::Ok();
}

}  // namespace weir::sim
