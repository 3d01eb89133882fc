#include "tools/sim/experiments/dsfq_setup.h"

#include "common/base/check.h"

namespace weir::sim {

SchedulerConfig ProfileOf(std::string_view name, uint32_t depth) {
  SchedulerConfig base;
  base.depth = depth;
  base.best_effort_min = 0;
  base.reset_idle = Duration(0);  // the papers forgive nothing
  const Result<SchedulerConfig> config = ApplyProfile(name, base);
  WEIR_CHECK(config.ok(), name);
  return *config;
}

void SilenceBestEffort(Cluster* cluster) {
  cluster->SetClass(Spec(kBestEffort, 1e-6));
}

std::function<void(Prng&, uint64_t, Io*)> FilesOf(uint64_t low_kib, uint64_t high_kib) {
  return [=](Prng& prng, uint64_t, Io* io) {
    io->bytes = prng.Uniform(low_kib * kKiB, high_kib * kKiB);
    io->lba = prng.Uniform(0, (256 * kMiB) / 4096) * 4096;
  };
}

}  // namespace weir::sim
