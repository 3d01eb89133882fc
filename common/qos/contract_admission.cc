#include "common/qos/contract_admission.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/qos/delay_bound.h"

namespace weir {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

double RateOfBound(const ServiceContract& contract, double iops_max, double c) {
  if (contract.bound <= Duration(0)) return 0;
  return IopsForDelay(contract.max_pending, iops_max, contract.bound, c).value_or(kImpossible);
}

std::string Number(double value) {
  return std::to_string(static_cast<int64_t>(std::lround(value)));
}

std::string Refusal(const ContractDecision& decision) {
  if (!std::isfinite(decision.rates.back())) {
    return "the latency bound is shorter than one request takes on this disk; a longer bound fits";
  }
  const double others = decision.reserved - decision.rates.back();
  if (others > decision.spare) {
    return "by this rule the classes promised so far may need " + Number(others) +
           " requests/s, more than the " + Number(decision.spare) +
           " that there are (largest that fits: 0)";
  }
  const double fits = decision.spare - others;
  return Number(others) + " of " + Number(decision.spare) +
         " requests/s already promised, this needs " + Number(decision.rates.back()) +
         " (largest that fits: " + Number(fits) + ")";
}

// Steps 2 and 3 for one class; true if step 5 counts it.
bool Book(const ServiceContract& contract, double iops_max, double c, bool measured,
          ContractDecision* decision) {
  const double by_delay = RateOfBound(contract, iops_max, c);
  const bool latency_bound = by_delay > contract.iops;
  decision->rates.push_back(std::max(contract.iops, by_delay));
  decision->latency_bound.push_back(latency_bound);
  return latency_bound || !measured;
}

void Decide(ContractDecision* decision) {
  decision->admitted = decision->reserved <= decision->spare;
  if (!decision->admitted) decision->why = Refusal(*decision);
}

}  // namespace

ContractDecision AdmitContract(const std::vector<AdmittedClass>& classes,
                               const ServiceContract& newcomer, double iops_max) {
  ContractDecision decision;
  for (const AdmittedClass& one : classes) Book(one.contract, iops_max, 1, false, &decision);
  Book(newcomer, iops_max, 1, false, &decision);
  for (double rate : decision.rates) decision.reserved += rate;
  decision.spare = iops_max;
  Decide(&decision);
  return decision;
}

ContractDecision AdmitMeasured(const std::vector<AdmittedClass>& classes,
                               const ServiceContract& newcomer, double iops_max,
                               const ServiceMeasures& measures, const AdmissionOptions& options) {
  ContractDecision decision;
  const auto part = [&](double e) {
    if (!measures.stable) return 1.0;
    const double newcomers = 1 + static_cast<double>(options.unmeasured);
    return std::min(1.0, measures.service_part(e) + newcomers * options.safety);
  };
  double strictest = newcomer.probability;
  const auto add = [&](const ServiceContract& contract, bool measured) {
    const double c = part(contract.probability);
    const bool counts = Book(contract, iops_max, c, measured && measures.stable, &decision);
    if (counts) decision.reserved += decision.rates.back();
    strictest = std::max(strictest, contract.probability);
  };
  for (const AdmittedClass& one : classes) add(one.contract, one.measured);
  add(newcomer, false);
  const double x = options.strictest ? strictest : newcomer.probability;
  decision.spare = iops_max - options.taken - (measures.stable ? measures.io_rate(x) : 0);
  Decide(&decision);
  return decision;
}

ContractDecision AdmitOnAll(size_t osds, const std::function<ContractDecision(size_t)>& admit) {
  ContractDecision decision;
  for (size_t i = 0; i < osds; ++i) {
    decision = admit(i);
    if (!decision.admitted) break;
  }
  return decision;
}

}  // namespace weir
