// Cost of one decision: Enqueue + Pull + Completed with every class backlogged. The project's limit
// is 1 us at 1,000 classes.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "client/qos/delay_tracker.h"
#include "osd/qos/control/bottleneck_solver.h"
#include "osd/qos/scheduler.h"

namespace weir::osd::qos {
namespace {

constexpr uint64_t kRate = uint64_t{1} << 30;
constexpr uint64_t kBytes = 4096;
constexpr int kQueuedPerClass = 4;

void Decide(benchmark::State& state, std::string_view profile) {
  const auto classes = static_cast<uint32_t>(state.range(0));
  SchedulerConfig base;
  base.token_rate = kRate;
  base.best_effort_min = 0;
  base.depth = 8;
  TimePoint now{0};
  Scheduler scheduler(*ApplyProfile(profile, base), now);
  std::vector<Request> requests(size_t{classes} * kQueuedPerClass);
  for (uint32_t i = 0; i < classes; ++i) {
    ClassSpec spec;
    spec.id = ClassId(kFirstUserClass.value + i);
    spec.weight = 1 + i % 7;
    spec.min_weight = 0.1 * spec.weight;
    if (i % 2 == 0) spec.reservation = Reservation{kRate / classes / 2, ReservationScope::kCluster};
    spec.disk.type = static_cast<ClassType>(i % 4);
    spec.disk.peak = 1.0 / classes;
    spec.disk.latency = std::chrono::milliseconds(10);
    spec.disk.throughput_bytes_per_s = kRate / classes / 2;
    scheduler.SetClass(spec, now);
    for (int k = 0; k < kQueuedPerClass; ++k) {
      Request& request = requests[size_t{i} * kQueuedPerClass + k];
      request.class_id = spec.id;
      request.bytes = kBytes;
      request.lba = MixHash(i, k);
      request.elsewhere = k;
      scheduler.Enqueue(&request, now);
    }
  }
  // A little slower than the token rate, so that a Pull nearly always finds something.
  const Duration step(static_cast<int64_t>(kBytes * 1'050'000'000 / kRate));
  int64_t decided = 0;
  for (auto _ : state) {
    now += step;
    const PullResult result = scheduler.Pull(now);
    if (result.request == nullptr) continue;
    ++decided;
    now += Duration(100);  // on the device: virtual disks are charged for it
    scheduler.Completed(result.request, now);
    scheduler.Enqueue(result.request, now);
  }
  state.SetItemsProcessed(decided);
  // How many pulls found a request: near 1, or the time above is not that of a decision.
  state.counters["found"] = static_cast<double>(decided) / static_cast<double>(state.iterations());
}

// What is left of that when there is nothing to decide: best effort alone, one request under way.
void DecideAlone(benchmark::State& state, std::string_view profile) {
  SchedulerConfig base;
  base.depth = 8;
  TimePoint now{0};
  Scheduler scheduler(*ApplyProfile(profile, base), now);
  Request request;
  request.bytes = kBytes;
  for (auto _ : state) {
    now += Duration(10'000);
    scheduler.Enqueue(&request, now);
    benchmark::DoNotOptimize(scheduler.Pull(now).request);
    scheduler.Completed(&request, now);
  }
}

// The tables of osd/qos/SPEED.md.
[[maybe_unused]] const bool registered = [] {
  for (const char* profile : {"noqos", "odis", "sfq", "dsfq-total", "dsfq-hybrid", "dsfq-hybrid-h",
                              "vd", "vc", "cscan", "cvc", "baa", "unified"}) {
    benchmark::RegisterBenchmark((std::string("Decide/") + profile).c_str(), Decide, profile)
        ->Arg(10)
        ->Arg(1000)
        ->Arg(10000);
    benchmark::RegisterBenchmark((std::string("BestEffort/") + profile).c_str(), DecideAlone,
                                 profile);
  }
  return true;
}();

// The coordinator's part of a request: one delay, for so many classes over a hundred OSDs.
void Track(benchmark::State& state) {
  client::DelayTracker tracker;
  const auto classes = static_cast<uint32_t>(state.range(0));
  uint32_t n = 0;
  for (auto _ : state) {
    ++n;
    benchmark::DoNotOptimize(tracker.OnSend(ClassId(n % classes), OsdId(n * 7 % 100), 4));
  }
}
BENCHMARK(Track)->Arg(10)->Arg(10000);

// Cost of one solution of BAA's program for so many clients.
void SolveTiers(benchmark::State& state, size_t tiers) {
  Tiers model{.count = tiers, .capacity = {200, 3000, 20000, 100000, 300, 500, 900, 4000}};
  std::vector<TierClient> clients(static_cast<size_t>(state.range(0)));
  for (size_t i = 0; i < clients.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < tiers; ++k) {
      clients[i].use[k] = static_cast<double>(1 + MixHash(i, k) % 1000);
      sum += clients[i].use[k];
    }
    for (size_t k = 0; k < tiers; ++k) clients[i].use[k] /= sum;
  }
  for (auto _ : state) benchmark::DoNotOptimize(SolveBottleneckAware(model, clients).total);
}

BENCHMARK_CAPTURE(SolveTiers, two, 2)->Arg(10)->Arg(1000);
BENCHMARK_CAPTURE(SolveTiers, four, 4)->Arg(10)->Arg(1000);
BENCHMARK_CAPTURE(SolveTiers, eight, 8)->Arg(10)->Arg(1000);

}  // namespace
}  // namespace weir::osd::qos

BENCHMARK_MAIN();
