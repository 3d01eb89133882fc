// The reader of scenarios, one method per kind of table. parse.cc holds the disks,
// parse_scheduler.cc their pipelines, parse_class.cc the classes, parse_workload.cc the workloads.
#pragma once

#include <string>

#include "tools/sim/scenario/scenario.h"
#include "tools/sim/scenario/toml_table.h"

namespace weir::sim {

// A key whose words `parse` knows; `piece` stays as it is without the key.
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
  static void TakeCvc(TomlTable* table, SchedulerConfig* config);
  static void TakeAllocation(TomlTable* table, SchedulerConfig* config);
  Status TakeDevice(TomlTable* table, Scenario* scenario);
  Status TakeTiers(TomlTable* table, DeviceSpec* device);
  Status TakeClass(TomlTable* table, Scenario* scenario);
  Status TakeWorkload(TomlTable* table, Scenario* scenario);

  static void TakeContract(TomlTable* table, ClassSpec* spec);
  static void TakeAdmission(TomlTable* table, const ClassSpec& spec, Scenario* scenario);
  static void TakeTransactions(TomlTable* table, ClassSpec* spec);
  DeviceFactory DeviceOf(TomlTable* table);
  DeviceFactory DiskOf(TomlTable* table);
  DeviceFactory RecordedOf(TomlTable* table);
  void TakeArrivals(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload);
  void TakeTrace(TomlTable* table, WorkloadSpec* workload);
  void TakeStandIn(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload);
  void TakeShape(TomlTable* table, WorkloadSpec* workload);
  void TakeRoute(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload);
  static void TakeHits(TomlTable* table, const Scenario& scenario,
                       const std::vector<size_t>& devices, WorkloadSpec* workload);
  static void TakeChanges(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload);
  static void TakeTransaction(TomlTable* table, const Scenario& scenario, WorkloadSpec* workload);
  ClassId ClassOf(TomlTable* table, const Scenario& scenario);
  [[nodiscard]] std::string Beside(const std::string& path) const;

  const toml::table& root_;
  std::string file_;
};

}  // namespace weir::sim
