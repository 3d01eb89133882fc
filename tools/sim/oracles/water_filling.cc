#include "tools/sim/oracles/water_filling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weir::sim {
namespace {

double FluidSum(double level, const std::vector<double>& weights,
                const std::vector<double>& elsewhere, const std::vector<double>& factors) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i] * std::max(level - elsewhere[i] / weights[i], level / (1 + factors[i]));
  }
  return sum;
}

}  // namespace

std::vector<double> WaterFill(double capacity, const std::vector<double>& weights,
                              const std::vector<double>& elsewhere) {
  const size_t n = weights.size();
  std::vector<double> level(n);
  for (size_t i = 0; i < n; ++i) level[i] = elsewhere[i] / weights[i];
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return level[a] < level[b]; });
  double water = 0;
  for (size_t k = n; k > 0; --k) {
    double volume = capacity;
    double width = 0;
    for (size_t j = 0; j < k; ++j) {
      volume += elsewhere[order[j]];
      width += weights[order[j]];
    }
    water = volume / width;
    if (water >= level[order[k - 1]]) break;
  }
  std::vector<double> rates(n);
  for (size_t i = 0; i < n; ++i) rates[i] = weights[i] * std::max(0.0, water - level[i]);
  return rates;
}

std::vector<double> HybridFill(double capacity, const std::vector<double>& weights,
                               const std::vector<double>& elsewhere,
                               const std::vector<double>& factors) {
  double low = 0;
  double high = 1;
  while (FluidSum(high, weights, elsewhere, factors) < capacity) high *= 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (FluidSum(middle, weights, elsewhere, factors) < capacity ? low : high) = middle;
  }
  std::vector<double> rates(weights.size());
  for (size_t i = 0; i < rates.size(); ++i) {
    rates[i] = weights[i] * std::max(high - elsewhere[i] / weights[i], high / (1 + factors[i]));
  }
  return rates;
}

std::vector<std::vector<double>> WaterFillAll(const std::vector<double>& capacities,
                                              const std::vector<double>& weights,
                                              const std::vector<std::vector<bool>>& uses) {
  const size_t streams = weights.size();
  std::vector<std::vector<double>> rates(streams, std::vector<double>(capacities.size(), 0));
  double change = 1;
  for (int round = 0; round < 10'000 && change > 1e-9; ++round) {
    change = 0;
    for (size_t brick = 0; brick < capacities.size(); ++brick) {
      std::vector<size_t> who;
      std::vector<double> w, elsewhere;
      for (size_t i = 0; i < streams; ++i) {
        if (!uses[i][brick]) continue;
        who.push_back(i);
        w.push_back(weights[i]);
        elsewhere.push_back(std::accumulate(rates[i].begin(), rates[i].end(), 0.0) -
                            rates[i][brick]);
      }
      if (who.empty()) continue;
      const std::vector<double> solved = WaterFill(capacities[brick], w, elsewhere);
      for (size_t k = 0; k < who.size(); ++k) {
        change = std::max(change, std::abs(rates[who[k]][brick] - solved[k]));
        rates[who[k]][brick] = solved[k];
      }
    }
  }
  return rates;
}

}  // namespace weir::sim
