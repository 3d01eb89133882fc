#include "tools/sim/workloads/arrivals.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace weir::sim {
namespace {

// Halves [from, from + length) until a slice is short or nearly empty.
void Split(double from, double length, double count, double bias, Prng* prng,
           std::vector<double>* moments) {
  constexpr double kShortest = 0.02;  // s
  if (length <= kShortest || count < 1) {
    double left = count;
    while (left >= 1 || prng->Chance(std::max(0.0, left))) {
      moments->push_back(from + length * prng->Real());
      left -= 1;
    }
    return;
  }
  const double first = prng->Chance(.5) ? bias : 1 - bias;
  Split(from, length / 2, count * first, bias, prng, moments);
  Split(from + length / 2, length / 2, count * (1 - first), bias, prng, moments);
}

}  // namespace

Gap Poisson(double per_s) {
  return [=](Prng& prng) { return FromSeconds(prng.Exponential(1 / per_s)); };
}

Gap PoissonOnOff(double per_s, Duration on, Duration off) {
  // `on_time` counts only time that is on; `at` is the real time of the last arrival.
  return [=, on_time = Duration(0), at = Duration(0)](Prng& prng) mutable {
    on_time += FromSeconds(prng.Exponential(1 / per_s));
    const Duration next = on_time + off * (on_time / on);
    const Duration wait = next - at;
    at = next;
    return wait;
  };
}

Gap BModel(double per_s, double bias, Duration length, Prng* prng) {
  std::vector<double> moments;
  const double seconds = ToSeconds(length);
  Split(0, seconds, per_s * seconds, bias, prng, &moments);
  std::sort(moments.begin(), moments.end());
  return AtMoments(std::move(moments));
}

Gap AtMoments(std::vector<double> seconds) {
  const auto moments = std::make_shared<const std::vector<double>>(std::move(seconds));
  return [moments, next = size_t{0}](Prng&) mutable {
    if (next == moments->size()) return Duration::max();
    const double before = next == 0 ? 0 : (*moments)[next - 1];
    const double wait = (*moments)[next++] - before;
    return FromSeconds(std::max(0.0, wait));
  };
}

}  // namespace weir::sim
