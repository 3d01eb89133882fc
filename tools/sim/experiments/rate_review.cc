#include "tools/sim/experiments/rate_review.h"

#include <algorithm>

#include "common/qos/delay_bound.h"

namespace weir::sim {

std::vector<double> RateReview::Review(const std::vector<AdmittedClass>& classes, double iops_max,
                                       const ServiceMeasures& measures, TimePoint now) {
  if (now < next_ || !measures.stable) return {};
  next_ = now + kPeriod;
  std::vector<double> rates;
  rates.reserve(classes.size());
  for (const AdmittedClass& one : classes) {
    const ServiceContract& contract = one.contract;
    double rate = contract.iops;
    if (contract.bound > Duration(0)) {
      const double c = std::min(1.0, measures.service_part(contract.probability) + options_.safety);
      const auto needed = IopsForDelay(contract.max_pending, iops_max, contract.bound, c);
      rate = std::max(rate, needed.value_or(iops_max));
    }
    rates.push_back(rate);
  }
  return rates;
}

}  // namespace weir::sim
