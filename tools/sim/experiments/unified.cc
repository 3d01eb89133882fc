// E50: promises, shares and the disk's order together, under the default profile.
#include <algorithm>

#include "tools/sim/devices/hdd.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/oracles/fairness_bound.h"
#include "tools/sim/workloads/arrivals.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kMiBd = static_cast<double>(kMiB);
constexpr uint32_t kDepth = 8;
constexpr ClassId kHog{19};

SchedulerConfig Unified(const Run& run, uint32_t depth = kDepth) {
  SchedulerConfig config = ProfileOf("unified", depth);
  config.token_rate = 60 * kMiB;
  if (run.broken(Fault::kReservationOff)) config.guarantee = GuaranteeKind::kNone;
  if (run.broken(Fault::kSharesOff)) config.surplus = SurplusKind::kFcfs;
  return config;
}

Load* StartStream(Cluster* cluster, ClassId id, size_t osd = 0) {
  return cluster->Start({.class_id = id, .outstanding = 32, .osd = osd, .shape = FilesOf(16, 128)});
}

// Promises below the shares: the shares are by weight, promises are floors and not extras.
void CheckShares(Run& run) {
  Cluster cluster(run.seed());
  cluster.AddOsd(Unified(run), Flat(60 * kMiBd));
  SilenceBestEffort(&cluster);
  cluster.SetClass(Reserved(kF, 10 * kMiB, 1));
  cluster.SetClass(Reserved(kG, 10 * kMiB, 2));
  cluster.SetClass(Spec(kH, 1));
  Load* f = StartStream(&cluster, kF);
  Load* g = StartStream(&cluster, kG);
  Load* h = StartStream(&cluster, kH);
  cluster.RunTo(60s);
  run.NearPart("promised 10, weight 1 of 4, MiB/s", f->MiBps(5s, 60s), 15, .05);
  run.NearPart("promised 10, weight 2 of 4", g->MiBps(5s, 60s), 30, .05);
  run.NearPart("no promise, weight 1 of 4", h->MiBps(5s, 60s), 15, .05);
}

// Promises above the shares: kept; the rest goes by weight.
void CheckPromises(Run& run) {
  Cluster cluster(run.seed());
  cluster.AddOsd(Unified(run), Flat(60 * kMiBd));
  SilenceBestEffort(&cluster);
  cluster.SetClass(Reserved(kF, 10 * kMiB, .1));
  cluster.SetClass(Reserved(kG, 10 * kMiB, .2));
  cluster.SetClass(Spec(kH, 1));
  cluster.SetClass(Spec(kHog, 3));
  Load* f = StartStream(&cluster, kF);
  Load* g = StartStream(&cluster, kG);
  Load* h = StartStream(&cluster, kH);
  Load* hog = StartStream(&cluster, kHog);
  cluster.RunTo(60s);
  run.NearPart("promised 10, weight .1 of 4.3, MiB/s", f->MiBps(5s, 60s), 10, .03);
  run.NearPart("promised 10, weight .2 of 4.3", g->MiBps(5s, 60s), 10, .03);
  run.NearPart("the rest, weight 1 of 4", h->MiBps(5s, 60s), 10, .05);
  run.NearPart("the rest, weight 3 of 4", hog->MiBps(5s, 60s), 30, .05);
}

// Totals over two OSDs: f on one, g on both, the second not full.
void CheckTotals(Run& run) {
  Cluster cluster(run.seed());
  for (int i = 0; i < 2; ++i) cluster.AddOsd(Unified(run), Flat(60 * kMiBd));
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  cluster.SetClass(Spec(kF));
  cluster.SetClass(Spec(kG));
  Load* f = StartStream(&cluster, kF);
  Load* g = StartStream(&cluster, kG);
  Load* more = cluster.Start({.class_id = kG,
                              .outstanding = 32,
                              .bytes = 72 * kKiB,
                              .osd = 1,
                              .pace = 20 * kMiBd,
                              .shape = FilesOf(16, 128)});
  cluster.RunTo(60s);
  run.NearPart("totals over two OSDs, g : f",
               (g->MiBps(5s, 60s) + more->MiBps(5s, 60s)) / f->MiBps(5s, 60s), 1, .05);
}

// Theorem 1 with what may be reordered counted into the depth (A2).
void CheckBound(Run& run) {
  Cluster cluster(run.seed());
  cluster.AddOsd(Unified(run), Slots(kDepth, 60 * kMiBd));
  SilenceBestEffort(&cluster);
  cluster.SetClass(Spec(kF, 1));
  cluster.SetClass(Spec(kG, 2));
  const int window = kDepth;  // what the profile's dispatch holds beyond the device
  FairnessBound bound(&cluster, Theorem::kOne, {{kF, 1}, {kG, 2}}, kDepth + window);
  StartStream(&cluster, kF);
  StartStream(&cluster, kG);
  cluster.RunTo(60s);
  // A bound that nothing comes near would hold for any scheduler.
  run.Between("largest part of theorem 1's bound used, D + Wd with Wd = D", bound.WorstPart(), .2,
              1);
}

// A class that asks for four fifths of its promise, by chance, against hogs: how much of it comes
// after its virtual finish time FT = max{arrival, FT_prev} + bytes / R, and a full device, later.
void CheckDeadlines(Run& run) {
  constexpr double kRate = 10 * kMiBd;
  constexpr uint64_t kBytes = 64 * kKiB;
  Cluster cluster(run.seed());
  cluster.AddOsd(Unified(run, 4), Flat(60 * kMiBd));
  SilenceBestEffort(&cluster);
  cluster.SetClass(Reserved(kF, static_cast<uint64_t>(kRate), .1));
  cluster.SetClass(Spec(kHog, 10));
  Load* hog = StartStream(&cluster, kHog);
  Load* f = cluster.Start({.class_id = kF,
                           .shape = FilesOf(64, 64),
                           .gap = Poisson(.8 * kRate / static_cast<double>(kBytes))});
  cluster.RunTo(60s);
  std::vector<Completion> done = f->completions();
  std::sort(done.begin(), done.end(),
            [](const Completion& a, const Completion& b) { return a.sent < b.sent; });
  const Duration device = FromSeconds(5 * 128.0 * 1024 / (60 * kMiBd));
  TimePoint finish{0};
  double missed = 0;
  for (const Completion& one : done) {
    finish = std::max(finish, one.sent) + FromSeconds(static_cast<double>(one.bytes) / kRate);
    missed += one.when > finish + device ? 1 : 0;
  }
  run.AtMost("part of a promised class after its finish time",
             missed / static_cast<double>(done.size()), .05, 0);
  run.NearPart("hogs meanwhile, MiB/s", hog->MiBps(5s, 60s), 52, .02);
}

double DiskRate(Run& run, const SchedulerConfig& config) {
  Cluster cluster(run.seed());
  cluster.AddOsd(config, Hdd(HddModelOf("dtla-307075")));
  SilenceBestEffort(&cluster);
  cluster.SetClass(Reserved(kF, kMiB / 4, 1));
  cluster.SetClass(Spec(kG, 2));
  double rate = 0;
  std::vector<Load*> loads;
  for (ClassId id : {kF, kG}) {
    loads.push_back(cluster.Start({.class_id = id,
                                   .outstanding = 32,
                                   .bytes = 8 * kKiB,
                                   .shape = [](Prng& prng, uint64_t, Io* io) {
                                     io->op = osd::qos::OpKind::kRead;
                                     io->lba = prng.Uniform(0, 9'000'000) * 8 * kKiB;
                                   }}));
  }
  cluster.RunTo(120s);
  for (const Load* load : loads) rate += load->Iops(10s, 120s);
  return rate;
}

// Depth 1, so that the order is the scheduler's alone.
void CheckDisk(Run& run) {
  SchedulerConfig unified = Unified(run, 1);
  unified.token_rate = kMiB;
  SchedulerConfig elevator = unified;
  elevator.guarantee = GuaranteeKind::kNone;
  elevator.surplus = SurplusKind::kFcfs;
  elevator.dispatch = DispatchKind::kCscan;
  const double best = DiskRate(run, elevator);
  run.AtLeast("random reads on a disk: efficiency over a C-SCAN of the same window",
              DiskRate(run, unified) / best, .9, 1);
}

void RunUnified(Run& run) {
  CheckShares(run);
  CheckPromises(run);
  CheckTotals(run);
  CheckBound(run);
  CheckDeadlines(run);
  CheckDisk(run);
}

}  // namespace

void AddUnified(std::vector<Experiment>* all) {
  all->push_back(
      {"E50", "Promises, shares and the disk's order together", "RULES.md §7, profile unified",
       "Two promises of 10 of 60 MiB/s and weights 1:2:1: promises are floors, the rest goes "
       "by weight, totals over two OSDs are equal, theorem 1 holds with the window counted "
       "into the depth, a promised class is served before its finish times, and the disk is "
       "as efficient as under C-SCAN.",
       RunUnified});
}

}  // namespace weir::sim
