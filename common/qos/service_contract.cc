#include "common/qos/service_contract.h"

#include <algorithm>
#include <cmath>

namespace weir {

Status CheckContract(const ServiceContract& contract) {
  if (contract.iops < 0) {
    return {ErrorCode::kInvalid, "requests per second cannot be negative (--iops)"};
  }
  if (contract.bound < Duration(0)) {
    return {ErrorCode::kInvalid, "a latency bound cannot be negative (--latency)"};
  }
  if (!(contract.probability > 0 && contract.probability < 1)) {
    return {ErrorCode::kInvalid,
            "a latency bound holds for more than 0 % and less than 100 % of the requests "
            "(--latency DUR@PERCENT)"};
  }
  return {};
}

ServiceContract PartOf(const ServiceContract& contract, size_t servers, double leeway) {
  ServiceContract part = contract;
  const auto count = static_cast<double>(std::max<size_t>(servers, 1));
  // Nobody is asked for more than the whole, however much room is left for skew.
  part.iops = std::min(contract.iops, leeway * contract.iops / count);
  // Of max_pending + 1 requests so many wait on one server, with as much room for skew.
  const double pending = std::min(contract.max_pending + 1.0,
                                  std::ceil(leeway * (contract.max_pending + 1.0) / count));
  part.max_pending = static_cast<uint32_t>(std::max(1.0, pending)) - 1;
  part.capacity_bytes = (contract.capacity_bytes + servers - 1) / std::max<size_t>(servers, 1);
  return part;
}

double ChooseLeeway(const ServiceContract& contract, size_t servers,
                    const std::vector<double>& rates, const std::vector<double>& candidates) {
  const double even = contract.iops / static_cast<double>(std::max<size_t>(servers, 1));
  const auto periods = static_cast<double>(rates.size());
  for (const double leeway : candidates) {
    const auto over = std::count_if(rates.begin(), rates.end(),
                                    [&](double rate) { return rate > leeway * even; });
    if (static_cast<double>(over) <= (1 - contract.probability) * periods) return leeway;
  }
  return candidates.empty() ? 1 : candidates.back();
}

}  // namespace weir
