#include "common/qos/contract_placement.h"

#include <algorithm>
#include <limits>

#include "common/qos/delay_bound.h"

namespace weir {
namespace {

double RateOn(const ServiceContract& part, const ContractServer& server) {
  if (part.bound <= Duration(0)) return part.iops;
  const auto needed = IopsForDelay(part.max_pending, server.iops_max, part.bound);
  return needed ? std::max(part.iops, *needed) : std::numeric_limits<double>::infinity();
}

// What is left of the scarcer resource when the part is there; negative if it does not fit.
double LeftAfter(const ServiceContract& part, const ContractServer& server) {
  const double iops = server.iops_max - server.iops_promised - RateOn(part, server);
  const double bytes = static_cast<double>(server.capacity_bytes) -
                       static_cast<double>(server.promised_bytes) -
                       static_cast<double>(part.capacity_bytes);
  if (iops < 0 || bytes < 0) return -1;
  const double of_iops = server.iops_max > 0 ? iops / server.iops_max : 0;
  const double of_bytes =
      server.capacity_bytes > 0 ? bytes / static_cast<double>(server.capacity_bytes) : 1;
  return std::min(of_iops, of_bytes);
}

}  // namespace

std::optional<std::vector<std::vector<size_t>>> PlaceContract(
    const ServiceContract& contract, const std::vector<ContractServer>& servers,
    const PlacementOptions& options) {
  const size_t stripe = std::max<size_t>(options.stripe, 1);
  const ServiceContract part = PartOf(contract, stripe, options.leeway);
  std::vector<bool> taken(servers.size(), false);
  std::vector<std::vector<size_t>> places(std::max<uint32_t>(contract.copies, 1));
  for (std::vector<size_t>& copy : places) {
    while (copy.size() < stripe) {
      size_t best = servers.size();
      double most = -1;
      for (size_t i = 0; i < servers.size(); ++i) {
        if (taken[i]) continue;
        const double left = LeftAfter(part, servers[i]);
        if (left < 0 || left <= most) continue;
        best = i;
        most = left;
      }
      if (best == servers.size()) return std::nullopt;
      taken[best] = true;
      copy.push_back(best);
    }
  }
  return places;
}

}  // namespace weir
