// E57: what the engine costs when it has nothing to decide: best effort alone, beside a plain
// queue.
#include <algorithm>
#include <array>

#include "tools/sim/baselines/plain_fifo.h"
#include "tools/sim/devices/hdd.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/devices/ssd.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFrom = 2s, kTo = 22s;
constexpr uint32_t kDepth = 8;
constexpr uint64_t kBlocks = 1 << 21;  // 32 GiB

struct Disk {
  std::string_view name;
  DeviceFactory device;
  double open_rate;  // requests per second of the open workload: about 70 % of what it can do
};

std::vector<Disk> Disks() {
  return {{"flat", Flat(60.0 * kMiB), 2700},
          {"slots", Slots(kDepth, 60.0 * kMiB), 2700},
          {"flash", Ssd({}), 9000},
          {"disk", Hdd(HddModelOf("dtla-307075")), 55}};
}

struct Outcome {
  std::vector<Completion> done;
  double rate = 0;  // requests per second
  double mean = 0;  // of latencies, seconds
  double p99 = 0;
};

// The engine with other people's promises, weights and limits registered, none of whom sends.
void RegisterIdleClasses(Cluster* cluster) {
  for (uint32_t i = 0; i < 8; ++i) {
    ClassSpec spec = Reserved(ClassId(16 + i), 2 * kMiB, 1 + i);
    if (i % 2 == 0) spec.limit_bytes_per_s = 4 * kMiB;
    cluster->SetClass(spec);
  }
}

Outcome Measure(const Run& run, const PolicyFactory& policy, const Disk& disk, bool open) {
  Cluster cluster(run.seed());
  cluster.AddOsd(policy, disk.device);
  RegisterIdleClasses(&cluster);
  // Of one size, so that the order alone changes nothing where addresses do not matter.
  LoadOptions options{
      .class_id = kBestEffort, .outstanding = 32, .shape = [](Prng& prng, uint64_t, Io* io) {
        io->bytes = 16 * kKiB;
        io->lba = prng.Uniform(0, kBlocks - 1) * 16 * kKiB;
      }};
  if (open) {
    const double mean = 1 / disk.open_rate;
    options.gap = [mean](Prng& prng) { return FromSeconds(prng.Exponential(mean)); };
  }
  const Load* load = cluster.Start(options);
  cluster.RunTo(kTo);
  return {load->completions(), load->Iops(kFrom, kTo), load->MeanLatency(kFrom, kTo),
          Quantile(load->Latencies(kFrom, kTo), .99)};
}

bool Same(const std::vector<Completion>& a, const std::vector<Completion>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Completion& x, const Completion& y) {
                      return x.when == y.when && x.sent == y.sent && x.bytes == y.bytes;
                    });
}

SchedulerConfig ConfigOf(const Run& run, std::string_view profile) {
  SchedulerConfig config = ProfileOf(profile, kDepth);
  if (config.gate == GateKind::kConserving) config.token_rate = 40 * kMiB;
  // Without a token rate the strict gate has nothing to hold anybody to. With one it does.
  if (run.broken(Fault::kGateShut)) {
    config.gate = GateKind::kStrict;
    config.token_rate = 40 * kMiB;
  }
  return config;
}

// Worst over the disks and both workloads.
struct Worst {
  double same = 1;  // every completion at the same nanosecond
  double rate = kUnbounded, mean = 0, p99 = 0;
};

Worst BesideFifo(const Run& run, std::string_view profile, const std::vector<Outcome>& fifo) {
  Worst worst;
  size_t n = 0;
  for (const Disk& disk : Disks()) {
    for (bool open : {false, true}) {
      const Outcome& plain = fifo[n++];
      const Outcome ours = Measure(run, ProductPolicy(ConfigOf(run, profile)), disk, open);
      worst.same = std::min(worst.same, Same(ours.done, plain.done) ? 1.0 : 0.0);
      worst.rate = std::min(worst.rate, ours.rate / plain.rate);
      worst.mean = std::max(worst.mean, ours.mean / plain.mean);
      worst.p99 = std::max(worst.p99, ours.p99 / plain.p99);
    }
  }
  return worst;
}

void RunBestEffort(Run& run) {
  std::vector<Outcome> fifo;
  for (const Disk& disk : Disks()) {
    for (bool open : {false, true}) fifo.push_back(Measure(run, PlainFifo(kDepth), disk, open));
  }
  for (std::string_view profile : {"noqos", "odis", "sfq", "dsfq-total", "dsfq-hybrid",
                                   "dsfq-hybrid-h", "vd", "baa", "vc", "cscan", "cvc", "unified"}) {
    const Worst worst = BesideFifo(run, profile, fifo);
    const std::string of = ", " + std::string(profile);
    const DispatchKind dispatch = ConfigOf(run, profile).dispatch;
    if (dispatch == DispatchKind::kFifo || dispatch == DispatchKind::kVc) {
      run.Near("every completion at the same nanosecond as a FIFO's" + of, worst.same, 1, 0);
      continue;
    }
    // These sort by address: where that matters (the disk) requests become faster.
    run.AtLeast("requests a second over a FIFO's, worst disk and load" + of, worst.rate, .999, 1);
    run.AtMost("mean latency over a FIFO's" + of, worst.mean, 1.001, 1);
    run.Report("P99 of latency over a FIFO's" + of, worst.p99, 1);
  }
}

}  // namespace

void AddBestEffort(std::vector<Experiment>* all) {
  all->push_back(
      {"E57", "Best effort alone: the engine beside a FIFO", "the goal that nobody pays for others",
       "One class, best effort, in a closed loop and open at 70 % of what the disk can do, on four "
       "models of disks, at depth 8, while eight classes with promises and limits are registered "
       "and idle. Profiles that dispatch in order complete every request at the same nanosecond "
       "as a plain queue; those that sort by address do as many requests with no more latency.",
       RunBestEffort});
}

}  // namespace weir::sim
