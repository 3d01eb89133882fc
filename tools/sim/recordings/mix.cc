#include "tools/sim/recordings/mix.h"

#include "tools/sim/workloads/arrivals.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kSpan = 1ull << 30;

}  // namespace

SchedulerConfig MixConfig(std::string_view profile) {
  SchedulerConfig base;
  base.token_rate = kMixRate;
  base.best_effort_min = kMiB;
  SchedulerConfig config = *ApplyProfile(profile, base);
  const bool own_depth = config.dispatch == DispatchKind::kCvc || config.EffectiveDepth() == 1;
  if (!own_depth) config.depth = 4;
  return config;
}

Shape MixShape(ClassId id, uint64_t least, uint64_t most, double reads, double locality) {
  ShapeOptions options;
  options.least_bytes = least;
  options.most_bytes = most;
  options.reads = reads;
  options.locality = locality;
  options.start = id.value * kSpan;
  options.span = kSpan;
  options.align = 4096;
  return MakeShape(options);
}

void SetMixClasses(Cluster* cluster, bool virtual_disks) {
  ClassSpec promised = Reserved(kPromisedClass, 8 * kMiB, 2, ReservationScope::kCluster);
  ClassSpec plain = Spec(kPlainClass);
  ClassSpec limited = Spec(kLimitedClass, 4);
  limited.limit_bytes_per_s = 3 * kMiB;
  ClassSpec reader = Spec(kReaderClass);
  reader.service.bound = 20ms;
  reader.service.max_pending = 0;
  if (virtual_disks) {
    promised.reservation.reset();
    promised.disk = {.type = ClassType::kRentADisk, .peak = .4};
    plain.disk = {.type = ClassType::kThroughput, .peak = .3, .throughput_bytes_per_s = 4 * kMiB};
    reader.service = {};
    reader.disk = {.type = ClassType::kLatency, .peak = .1, .latency = 20ms};
  }
  for (const ClassSpec& spec : {promised, plain, limited, reader, Spec(kBurstyClass, 1.5)}) {
    cluster->SetClass(spec);
  }
  cluster->SetClass(Spec(kSystemCompaction, .1));
}

void StartMix(Cluster* cluster, size_t osd, size_t coordinator) {
  const auto start = [&](LoadOptions options) {
    options.osd = osd;
    options.coordinator = coordinator;
    cluster->Start(std::move(options));
  };
  start({.class_id = kPromisedClass,
         .outstanding = 16,
         .shape = MixShape(kPromisedClass, 64 * kKiB, 64 * kKiB, 1, .9)});
  start({.class_id = kPlainClass,
         .outstanding = 32,
         .shape = MixShape(kPlainClass, 4 * kKiB, 64 * kKiB, .5, .1)});
  start({.class_id = kLimitedClass,
         .outstanding = 4,
         .shape = MixShape(kLimitedClass, 256 * kKiB, 256 * kKiB, 0, .9)});
  start({.class_id = kReaderClass,
         .outstanding = 1,
         .shape = MixShape(kReaderClass, 4 * kKiB, 4 * kKiB, 1, 0),
         .think = 1ms});
  start({.class_id = kBurstyClass,
         .shape = MixShape(kBurstyClass, 16 * kKiB, 16 * kKiB, .7, .5),
         .gap = PoissonOnOff(200, 200ms, 300ms)});
  start({.class_id = kBestEffort,
         .outstanding = 2,
         .shape = MixShape(kBestEffort, 32 * kKiB, 32 * kKiB, .5, 0)});
  start({.class_id = kSystemCompaction,
         .outstanding = 1,
         .shape = MixShape(kSystemCompaction, 512 * kKiB, 512 * kKiB, 0, 1)});
}

}  // namespace weir::sim
