#include <fmt/format.h>

#include "tools/sim/scenario/parser.h"

namespace weir::sim {

// Dispatch `vc` and `cvc`.
void Parser::TakeCvc(TomlTable* table, SchedulerConfig* config) {
  CvcConfig& cvc = config->cvc;
  if (table->Has("service_estimate") && table->Text("service_estimate", "auto") != "auto") {
    cvc.fixed_estimate = table->Time("service_estimate", Duration(0));
    if (cvc.fixed_estimate <= Duration(0)) {
      table->Fail("service_estimate", "must be longer than nothing, or \"auto\"");
    }
  }
  cvc.estimate_part = table->Number("estimate_part", cvc.estimate_part, .01, 1);
  cvc.run_max = static_cast<uint32_t>(table->Whole("run_max", cvc.run_max, 0, 1'000'000));
  cvc.candidates = static_cast<uint32_t>(table->Whole("candidates", cvc.candidates, 1, 1'000));
  cvc.late_mode = table->Flag("late_mode", cvc.late_mode);
  cvc.ahead_max = table->Time("ahead_max", cvc.ahead_max);
  config->anticipation = table->Flag("anticipation", config->anticipation);
}

// Who gets how much of a device with tiers; the words are those of `osdctl osd set`.
void Parser::TakeAllocation(TomlTable* table, SchedulerConfig* config) {
  AllocationConfig& allocation = config->allocation;
  TakePiece(table, "allocation", &allocation.kind, ParseAllocation);
  allocation.period = table->Time("allocation_period", allocation.period);
  allocation.window = table->Time("allocation_window", allocation.window);
  allocation.alarm = table->Flag("allocation_alarm", allocation.alarm);
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
  config.iops_max = static_cast<uint64_t>(table.Whole("iops_max", 0, 0, 1'000'000'000));
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
  config.maximizer = table.Flag("maximizer", config.maximizer);
  TakeCvc(&table, &config);
  TakeAllocation(&table, &config);
  return table.Done();
}

}  // namespace weir::sim
