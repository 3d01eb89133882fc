#include "tools/sim/workloads/stand_ins.h"

#include "common/base/check.h"
#include "tools/sim/workloads/arrivals.h"
#include "tools/sim/workloads/shapes.h"

namespace weir::sim {
namespace {

constexpr uint64_t kGB = 1'000'000'000;

struct Published {
  std::string_view name;
  double per_s;     // 0: closed loop
  double bias;      // of the b-model
  int outstanding;  // closed loop
  ShapeOptions shape;
  double median_bytes;  // 0: sizes uniform
  double tail_chance;   // requests up to tail_bytes
  uint64_t tail_bytes;
};

const std::vector<Published>& All() {
  static const std::vector<Published> all{
      {"financial",
       102,
       .75,
       0,
       {.least_bytes = 512,
        .most_bytes = 6144,
        .reads = .23,
        .locality = .05,
        .span = 15 * kGB,
        .zipf = .9},
       0,
       .01,
       64 * kKiB},
      {"websearch",
       337,
       .65,
       0,
       {.least_bytes = 8 * kKiB,
        .most_bytes = 32 * kKiB,
        .reads = .999,
        .span = 96 * kGB,
        .zipf = .7},
       0,
       0,
       0},
      {"tpc-c",
       0,
       0,
       16,
       {.least_bytes = 8 * kKiB, .most_bytes = 8 * kKiB, .reads = .64, .span = 9 * kGB, .zipf = .8},
       0,
       0,
       0},
      {"exchange",
       400,
       .8,
       0,
       {.least_bytes = 512, .most_bytes = 8 * kMiB, .reads = .6, .locality = .2, .span = 30 * kGB},
       8 * kKiB,
       0,
       0},
      {"openmail",
       1000,
       .8,
       0,
       {.least_bytes = 512, .most_bytes = 512, .reads = .5, .locality = .1, .span = 186 * kGB / 60},
       0,
       0,
       0},
      {"video",
       0,
       0,
       1,
       {.least_bytes = 64 * kKiB,
        .most_bytes = 64 * kKiB,
        .reads = 1,
        .locality = 1,
        .span = 4 * kGB},
       0,
       0,
       0},
  };
  return all;
}

Shape ShapeOf(const Published& published, const StandIn& how) {
  ShapeOptions shape = published.shape;
  shape.start = how.start;
  shape.span = static_cast<uint64_t>(static_cast<double>(shape.span) * how.footprint_scale);
  if (published.median_bytes > 0) return MakeLogNormal(shape, published.median_bytes, 1.2);
  Shape body = MakeShape(shape);
  if (published.tail_chance <= 0) return body;
  return [=](Prng& prng, uint64_t n, Io* io) {
    body(prng, n, io);
    if (prng.Chance(published.tail_chance)) {
      io->bytes = prng.Uniform(shape.most_bytes, published.tail_bytes);
    }
  };
}

}  // namespace

std::vector<std::string_view> StandInNames() {
  std::vector<std::string_view> names;
  for (const Published& published : All()) names.push_back(published.name);
  return names;
}

void PlayStandIn(std::string_view name, const StandIn& how, Prng* prng, LoadOptions* options) {
  for (const Published& published : All()) {
    if (published.name != name) continue;
    if (published.per_s > 0) {
      options->gap = BModel(published.per_s * how.speed, published.bias, how.length, prng);
    } else {
      options->outstanding = published.outstanding;
    }
    options->shape = ShapeOf(published, how);
    return;
  }
  WEIR_CHECK(false, name);
}

}  // namespace weir::sim
