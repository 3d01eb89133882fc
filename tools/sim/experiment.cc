#include "tools/sim/experiment.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::sim {
namespace {

constexpr std::array<std::pair<Fault, std::string_view>, 25> kFaults{{
    {Fault::kDelayOff, "delay-off"},
    {Fault::kHistoryOff, "history-off"},
    {Fault::kMinimumOff, "minimum-off"},
    {Fault::kReservationOff, "reservation-off"},
    {Fault::kGateOpen, "gate-open"},
    {Fault::kMaximizerOff, "maximizer-off"},
    {Fault::kLatestStartIgnored, "latest-start-ignored"},
    {Fault::kToleranceZero, "tolerance-zero"},
    {Fault::kWeightsFrozen, "weights-frozen"},
    {Fault::kSpareCharged, "spare-charged"},
    {Fault::kSharesOff, "shares-off"},
    {Fault::kLimitOff, "limit-off"},
    {Fault::kLimitUndivided, "limit-undivided"},
    {Fault::kTransactionsOff, "transactions-off"},
    {Fault::kTimeUncounted, "time-uncounted"},
    {Fault::kGateShut, "gate-shut"},
    {Fault::kMeasurementOff, "measurement-off"},
    {Fault::kManagerSlow, "manager-slow"},
    {Fault::kCacheOff, "cache-off"},
    {Fault::kMinimumLarge, "minimum-large"},
    {Fault::kStripesApart, "stripes-apart"},
    {Fault::kAdjustmentOff, "adjustment-off"},
    {Fault::kRunUnbounded, "run-unbounded"},
    {Fault::kBoundIgnored, "bound-ignored"},
    {Fault::kWindowShort, "window-short"},
}};

}  // namespace

std::string_view ToText(Fault fault) {
  for (const auto& [known, word] : kFaults) {
    if (known == fault) return word;
  }
  return "none";
}

Fault ParseFault(std::string_view word) {
  for (const auto& [fault, known] : kFaults) {
    if (known == word) return fault;
  }
  return Fault::kNone;
}

std::vector<Fault> AllFaults() {
  std::vector<Fault> faults;
  faults.reserve(kFaults.size());
  for (const auto& [fault, word] : kFaults) faults.push_back(fault);
  return faults;
}

void Run::Near(std::string name, double measured, double expected, double tolerance) {
  Add({std::move(name), expected, measured, expected - tolerance, expected + tolerance});
}

void Run::NearPart(std::string name, double measured, double expected, double part) {
  Near(std::move(name), measured, expected, std::abs(expected) * part);
}

void Run::Between(std::string name, double measured, double low, double high, double expected) {
  Add({std::move(name), expected, measured, low, high});
}

void Run::AtLeast(std::string name, double measured, double low, double expected) {
  Add({std::move(name), expected, measured, low, kUnbounded});
}

void Run::AtMost(std::string name, double measured, double high, double expected) {
  Add({std::move(name), expected, measured, -kUnbounded, high});
}

void Run::True(std::string name, bool holds) {
  Add({std::move(name), 1, holds ? 1.0 : 0.0, 1, 1});
}

void Run::Report(std::string name, double measured, double expected) {
  Add({std::move(name), expected, measured, -kUnbounded, kUnbounded});
}

bool Run::pass() const {
  return std::all_of(checks_.begin(), checks_.end(), [](const Check& c) { return c.pass(); });
}

const Experiment* FindExperiment(std::string_view id) {
  for (const Experiment& experiment : AllExperiments()) {
    if (experiment.id == id) return &experiment;
  }
  return nullptr;
}

}  // namespace weir::sim
