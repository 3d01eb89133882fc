#include "tools/sim/experiments/aqua_setup.h"

#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {

ClassId WriterId(size_t i) {
  return ClassId(16 + static_cast<uint32_t>(i));
}

SchedulerConfig Odis(bool maximizer) {
  SchedulerConfig config = ProfileOf("odis", 0);
  config.token_rate = kGlobalRate * kMiB;
  config.maximizer = maximizer;
  return config;
}

SchedulerConfig OdisFor(const Run& run, bool maximizer) {
  SchedulerConfig config = Odis(maximizer && !run.broken(Fault::kMaximizerOff));
  if (run.broken(Fault::kGateOpen)) config.gate = GateKind::kConserving;
  if (run.broken(Fault::kReservationOff)) config.guarantee = GuaranteeKind::kNone;
  return config;
}

void AddWriterClasses(const Run& /*run*/, Cluster* cluster, bool promises) {
  for (size_t i = 0; i < std::size(kPromised); ++i) {
    cluster->SetClass(promises ? Reserved(WriterId(i), kPromised[i] * kMiB) : Spec(WriterId(i)));
  }
}

Load* StartWriter(Cluster* cluster, size_t i) {
  constexpr uint64_t kPart = 10ull << 30;
  return cluster->Start(
      {.class_id = WriterId(i),
       .outstanding = 4,
       .bytes = 512 * kKiB,
       .shape = [i](Prng&, uint64_t n, Io* io) { io->lba = i * kPart + n * 512 * kKiB % kPart; }});
}

double SumMiBps(const std::vector<Load*>& loads, Duration from, Duration to) {
  double sum = 0;
  for (const Load* load : loads) sum += load->MiBps(from, to);
  return sum;
}

}  // namespace weir::sim
