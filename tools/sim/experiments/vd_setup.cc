#include "tools/sim/experiments/vd_setup.h"

#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

constexpr uint64_t kHalf = 900'000'000;  // bytes; both halves fit on the smaller disk

ClassSpec Disk(ClassId id, const VirtualDisk& disk) {
  ClassSpec spec = Spec(id);
  spec.disk = disk;
  return spec;
}

}  // namespace

SchedulerConfig VdConfig() {
  SchedulerConfig config = ProfileOf("vd", 1);
  config.throughput_window = Duration(0);
  return config;
}

SchedulerConfig VdConfigFor(const Run& run) {
  SchedulerConfig config = VdConfig();
  if (run.broken(Fault::kTimeUncounted)) config.cost = CostKind::kRequests;
  return config;
}

ClassSpec RentADisk(ClassId id, double peak) {
  return Disk(id, {.type = ClassType::kRentADisk, .peak = peak});
}

ClassSpec LatencyDisk(ClassId id, double peak, Duration bound) {
  return Disk(id, {.type = ClassType::kLatency, .peak = peak, .latency = bound});
}

ClassSpec ThroughputDisk(ClassId id, double peak, double requests_per_s, double tolerance) {
  const auto rate = static_cast<uint64_t>(requests_per_s * static_cast<double>(kSector));
  return Disk(id, {.type = ClassType::kThroughput,
                   .peak = peak,
                   .throughput_bytes_per_s = rate,
                   .tolerance = tolerance});
}

std::function<void(Prng&, uint64_t, Io*)> LocalFlow::shape() const {
  return [state = state_](Prng& prng, uint64_t, Io* io) {
    State& s = *state;
    const bool adjacent = prng.Chance(s.locality) && s.next + kSector <= s.base + s.span;
    if (!adjacent) s.next = s.base + prng.Uniform(0, s.span / kSector - 1) * kSector;
    io->bytes = kSector;
    io->lba = s.next;
    io->op = osd::qos::OpKind::kRead;
    s.next += kSector;
  };
}

LocalFlow FlowOn(int half, double locality) {
  return {static_cast<uint64_t>(half) * kHalf, kHalf, locality};
}

DeviceFactory FastDisk(bool catalogue) {
  return Hdd(HddModelOf("st34501n", catalogue));
}

DeviceFactory SlowDisk(bool catalogue) {
  return Hdd(HddModelOf("st32171w", catalogue));
}

}  // namespace weir::sim
