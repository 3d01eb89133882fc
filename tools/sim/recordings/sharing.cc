// Shares: weights, delays of other OSDs and of other tiers, idle and backlogged classes, from one
// class to a thousand, weights by bottleneck.
#include <fmt/format.h>

#include "osd/io/tier_delays.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/devices/tiered.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/experiments/tiered_setup.h"
#include "tools/sim/recordings/mix.h"
#include "tools/sim/workloads/arrivals.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

// The paper's two bricks: f on one, g on both, through three coordinators.
void RunTwoBricks(Session& session, std::string_view profile) {
  Cluster cluster(1);
  const SchedulerConfig config = ProfileOf(profile, kBrickDepth);
  for (size_t i = 0; i < 2; ++i) {
    session.AddOsd(&cluster, config, Slots(kBrickDepth, kBrickRate), fmt::format("osd{}", i), 6000);
  }
  SilenceBestEffort(&cluster);
  for (const ClassId id : {kF, kG}) {
    ClassSpec spec = Spec(id, .5);
    spec.min_weight = 1.0 / 12;
    cluster.SetClass(spec);
  }
  const auto start = [&](ClassId id, size_t osd) {
    cluster.Start({.class_id = id,
                   .outstanding = 20,
                   .route = [=](uint64_t n) { return std::pair(osd, n % 3); },
                   .shape = MixShape(id, kKiB, 16 * kKiB, .5, 0)});
  };
  start(kF, 0);
  start(kG, 0);
  start(kG, 1);
  session.RunTo(&cluster, 10s);
}

// Bursts of 50 that alternate between two OSDs.
void RunAlternating(Session& session, std::string_view profile) {
  Cluster cluster(2);
  for (size_t i = 0; i < 2; ++i) {
    session.AddOsd(&cluster, ProfileOf(profile, 4), Flat(6 * kMB), fmt::format("osd{}", i), 6000);
  }
  SilenceBestEffort(&cluster);
  for (const ClassId id : {kF, kG, kH}) cluster.SetClass(Spec(id, .5));
  cluster.Start({.class_id = kF,
                 .outstanding = 16,
                 .route = [](uint64_t n) { return std::pair<size_t, size_t>(n / 50 % 2, 0); },
                 .shape = MixShape(kF, 8 * kKiB, 8 * kKiB, .5, 0)});
  for (size_t i = 0; i < 2; ++i) {
    cluster.Start({.class_id = i == 0 ? kG : kH,
                   .outstanding = 16,
                   .osd = i,
                   .shape = MixShape(kG, 8 * kKiB, 8 * kKiB, .5, 0)});
  }
  session.RunTo(&cluster, 10s);
}

// Classes that come, go idle for longer than what forgives them, and come back.
void RunIdle(Session& session, std::string_view profile) {
  Cluster cluster(3);
  SchedulerConfig config = MixConfig(profile);
  config.reset_idle = 1s;
  config.depth = 4;
  for (size_t i = 0; i < 2; ++i) {
    session.AddOsd(&cluster, config, Flat(10 * kMiB), fmt::format("osd{}", i), 6000);
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const ClassId id(16 + i);
    cluster.SetClass(Spec(id, 1 + i));
    Load* load = cluster.Start({.class_id = id,
                                .outstanding = 8,
                                .osd = 0,
                                .shape = MixShape(id, 32 * kKiB, 32 * kKiB, .5, .5)});
    if (i == 0) continue;
    for (Duration at = i * 400ms; at < 12s; at += i * 1s) {
      cluster.At(at, [load] { load->SetOutstanding(0); });
      cluster.At(at + i * 700ms, [load] { load->SetOutstanding(8); });
    }
    cluster.Start({.class_id = id,
                   .outstanding = 4,
                   .osd = 1,
                   .shape = MixShape(id, 32 * kKiB, 32 * kKiB, .5, .5)});
  }
  session.RunTo(&cluster, 12s);
}

void RunMany(Session& session, std::string_view profile, uint32_t classes) {
  Cluster cluster(4);
  session.AddOsd(&cluster, MixConfig(profile), Slots(8, kMixRate), "", 10'000 + 6 * classes);
  for (uint32_t i = 0; i < classes; ++i) {
    const ClassId id(16 + i);
    ClassSpec spec = Spec(id, 1 + i % 7);
    if (i % 10 == 3) spec.reservation = Reservation{.bytes_per_s = kMixRate / 2 / classes};
    if (i % 10 == 6) spec.limit_bytes_per_s = kMixRate / classes;
    if (i % 50 == 9) spec.service = {.bound = 30ms, .max_pending = 1};
    cluster.SetClass(spec);
    cluster.Start({.class_id = id,
                   .outstanding = classes < 50 ? 8 : 2,
                   .shape = MixShape(id, 4 * kKiB, 64 * kKiB, .5, .5)});
  }
  session.RunTo(&cluster, 10s);
}

// Closed loops of very different depth, some that rest between their requests.
void RunDepths(Session& session, CostKind cost) {
  Cluster cluster(5);
  SchedulerConfig config = MixConfig("dsfq-total");
  config.cost = cost;
  session.AddOsd(&cluster, config, Slots(4, kMixRate));
  const int depths[] = {1, 2, 8, 64};
  for (uint32_t i = 0; i < 4; ++i) {
    const ClassId id(16 + i);
    cluster.SetClass(Spec(id, i % 2 == 0 ? 1 : 3));
    const uint64_t bytes = (i % 2 == 0 ? 4 : 256) * kKiB;
    cluster.Start({.class_id = id,
                   .outstanding = depths[i],
                   .shape = MixShape(id, bytes, bytes, .5, .5),
                   .think = i == 1 ? 3ms : 0ms});
  }
  session.RunTo(&cluster, 10s);
}

// An OSD of two tiers with a scheduler each, to which the other tier is what other OSDs are.
class TierHook final : public CoordinatorHook {
 public:
  void OnSend(Job* job) override {
    const int64_t tokens = TokensOf(job->io.bytes);
    job->request.elsewhere = delays_.OnRequest(job->request.class_id, job->io.osd, 0, tokens);
  }
  void OnDone(const Job& /*job*/) override {}

 private:
  osd::TierDelays delays_;
};

void RunTiers(Session& session) {
  Cluster cluster(6);
  cluster.SendDelays(false);
  cluster.SetHook(std::make_unique<TierHook>());
  session.AddOsd(&cluster, MixConfig("dsfq-total"), Exponential(200), "hdd", 6000);
  session.AddOsd(&cluster, MixConfig("dsfq-total"), Exponential(1500), "ssd", 6000);
  const double hits[] = {.2, .5, .8};
  for (uint32_t i = 0; i < 3; ++i) {
    const ClassId id(16 + i);
    cluster.SetClass(Spec(id, 1 + i));
    const Shape shape = MixShape(id, 4 * kKiB, 32 * kKiB, .7, .1);
    cluster.Start({.class_id = id,
                   .outstanding = 64,
                   .shape = [shape, hit = hits[i]](Prng& prng, uint64_t n, Io* io) {
                     shape(prng, n, io);
                     io->osd = prng.Chance(hit) ? 1 : 0;
                   }});
  }
  session.RunTo(&cluster, 10s);
}

// Weights as bottleneck-aware allocation has them for hit ratios that change, in an array of two
// tiers behind one scheduler.
void RunBottlenecks(Session& session) {
  const osd::qos::Tiers tiers = HdAndSsd(200, 1000);
  Cluster cluster(7);
  session.AddOsd(&cluster, ProfileOf("baa", 128),
                 Tiered({Exponential(tiers.capacity[0]), Exponential(tiers.capacity[1])}));
  SilenceBestEffort(&cluster);
  const auto weigh = [&cluster, tiers](const std::vector<double>& hits) {
    const auto weights = WeightsOf(TierPolicy::kBottleneckAware, tiers, hits);
    for (uint32_t i = 0; i < hits.size(); ++i) cluster.SetClass(Spec(ClassId(16 + i), weights[i]));
  };
  auto hits = std::make_shared<std::vector<double>>(std::vector<double>{.75, .5, .9, .95});
  weigh(*hits);
  for (uint32_t i = 0; i < hits->size(); ++i) {
    const ClassId id(16 + i);
    const Shape shape = MixShape(id, 4 * kKiB, 4 * kKiB, 1, 0);
    cluster.Start({.class_id = id,
                   .outstanding = 128,
                   .shape = [shape, hits, i](Prng& prng, uint64_t n, Io* io) {
                     shape(prng, n, io);
                     io->tier = prng.Chance((*hits)[i]) ? 1 : 0;
                   }});
  }
  cluster.At(1500ms, [hits, weigh] {
    *hits = {.2, .98, .4, .9};
    weigh(*hits);
  });
  session.RunTo(&cluster, 10s);
}

}  // namespace

void AddSharing(std::vector<Workload>* all) {
  const auto add = [all](std::string name, std::string covers, auto run) {
    all->push_back({std::move(name), std::move(covers), std::move(run)});
  };
  for (const std::string_view profile : {"sfq", "dsfq-total", "dsfq-hybrid", "dsfq-hybrid-h"}) {
    add(fmt::format("bricks-{}", profile),
        fmt::format("`{}`: f on one OSD, g on both, three coordinators, depth 20", profile),
        [profile](Session& s) { RunTwoBricks(s, profile); });
  }
  for (const std::string_view profile : {"dsfq-hybrid", "dsfq-hybrid-h", "unified"}) {
    add(fmt::format("alternating-{}", profile),
        fmt::format("`{}`: bursts of 50 that alternate between two OSDs", profile),
        [profile](Session& s) { RunAlternating(s, profile); });
  }
  for (const std::string_view profile : {"dsfq-hybrid-h", "unified"}) {
    add(fmt::format("idle-{}", profile),
        fmt::format("`{}`: classes go idle, are forgiven, come back", profile),
        [profile](Session& s) { RunIdle(s, profile); });
  }
  for (const uint32_t classes : {1, 10, 100, 1000}) {
    for (const std::string_view profile : {"unified", "odis"}) {
      add(fmt::format("classes-{}-{}", classes, profile),
          fmt::format("`{}`: {} backlogged classes; promises, limits and bounds among them",
                      profile, classes),
          [=](Session& s) { RunMany(s, profile, classes); });
    }
  }
  for (const CostKind cost : {CostKind::kBytes, CostKind::kRequests, CostKind::kDeviceTime}) {
    add(fmt::format("cost-{}", ToText(cost)),
        fmt::format("DSFQ, cost `{}`: 4 KiB beside 256 KiB, 1 to 64 under way", ToText(cost)),
        [cost](Session& s) { RunDepths(s, cost); });
  }
  add("tiers", "a scheduler per tier of an OSD, each hearing of the other's (TierDelays)",
      RunTiers);
  add("bottlenecks", "weights of bottleneck-aware allocation that change, depth 128",
      RunBottlenecks);
}

}  // namespace weir::sim
