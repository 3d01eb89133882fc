#include "tools/sim/workloads/self_similar.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace weir::sim {
namespace {

constexpr double kSlot = .010;  // seconds: finer than this arrivals are even

void Split(double from, double length, double count, double bias, Prng& prng,
           std::vector<double>* arrivals) {
  if (length <= kSlot || count < 1) {
    // A part of an arrival is an arrival with that probability.
    const auto whole = static_cast<int>(count) +
                       (prng.Chance(count - static_cast<double>(static_cast<int>(count))) ? 1 : 0);
    for (int i = 0; i < whole; ++i) arrivals->push_back(from + length * prng.Real());
    return;
  }
  const double left = prng.Chance(.5) ? bias : 1 - bias;
  Split(from, length / 2, count * left, bias, prng, arrivals);
  Split(from + length / 2, length / 2, count * (1 - left), bias, prng, arrivals);
}

struct Sequence {
  std::vector<double> arrivals;
  size_t next = 0;
  double last = 0;
  bool made = false;
};

}  // namespace

std::function<Duration(Prng&)> SelfSimilarGaps(const SelfSimilar& model) {
  const auto sequence = std::make_shared<Sequence>();
  return [model, sequence](Prng& prng) {
    Sequence& s = *sequence;
    if (!s.made) {
      const double length = ToSeconds(model.length);
      Split(0, length, model.rate * length, model.bias, prng, &s.arrivals);
      std::sort(s.arrivals.begin(), s.arrivals.end());
      s.made = true;
    }
    if (s.next == s.arrivals.size()) return Duration::max();
    const double wait = s.arrivals[s.next] - s.last;
    s.last = s.arrivals[s.next++];
    return FromSeconds(wait);
  };
}

}  // namespace weir::sim
