#include "tools/sim/workloads/shapes.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "common/base/prng.h"

namespace weir::sim {
namespace {

// Picks a part of the address space with probability 1 / rank^exponent.
class Zipf {
 public:
  Zipf(int units, double exponent) {
    double sum = 0;
    for (int i = 1; i <= units; ++i) cumulative_.push_back(sum += std::pow(i, -exponent));
    for (double& value : cumulative_) value /= sum;
  }
  size_t Pick(Prng* prng) const {
    const double dice = prng->Real();
    const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end(), dice);
    return std::min(static_cast<size_t>(at - cumulative_.begin()), cumulative_.size() - 1);
  }

 private:
  std::vector<double> cumulative_;
};

double Normal(Prng* prng) {
  const double u = 1 - prng->Real();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * prng->Real());
}

// Address and direction, given the size.
class Placer {
 public:
  explicit Placer(const ShapeOptions& options)
      : options_(options), zipf_(std::max(1, options.units), options.zipf) {}

  void Place(Prng* prng, Io* io) {
    io->op = prng->Chance(options_.reads) ? osd::qos::OpKind::kRead : osd::qos::OpKind::kWrite;
    const uint64_t end = options_.start + options_.span;
    const bool follows = prng->Chance(options_.locality) && next_ + io->bytes <= end;
    io->lba = follows ? std::max(next_, options_.start) : Anywhere(prng);
    next_ = io->lba + io->bytes;
  }

 private:
  uint64_t Anywhere(Prng* prng) {
    uint64_t from = 0;
    uint64_t length = options_.span;
    if (options_.zipf > 0) {
      length = options_.span / static_cast<uint64_t>(options_.units);
      from = zipf_.Pick(prng) * length;
    }
    const uint64_t slots = std::max<uint64_t>(1, length / options_.align);
    return options_.start + from + prng->Uniform(0, slots - 1) * options_.align;
  }

  ShapeOptions options_;
  Zipf zipf_;
  uint64_t next_ = 0;
};

}  // namespace

Shape MakeShape(const ShapeOptions& options) {
  const auto placer = std::make_shared<Placer>(options);
  return [=](Prng& prng, uint64_t, Io* io) {
    io->bytes = prng.Uniform(options.least_bytes, options.most_bytes);
    placer->Place(&prng, io);
  };
}

Shape MakeLogNormal(const ShapeOptions& options, double median_bytes, double sigma) {
  const auto placer = std::make_shared<Placer>(options);
  return [=](Prng& prng, uint64_t, Io* io) {
    const double size = median_bytes * std::exp(sigma * Normal(&prng));
    const auto rounded = static_cast<uint64_t>(std::llround(size / 512)) * 512;
    io->bytes = std::clamp(rounded, options.least_bytes, options.most_bytes);
    placer->Place(&prng, io);
  };
}

}  // namespace weir::sim
