// E30b: BAA without a central array: tiers are OSDs of their own, and TOTAL-DSFQ keeps the ratio of
// the totals (RULES.md A35).
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/experiments/tiered_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::Tiers;

constexpr Duration kFrom = 60s, kTo = 660s, kEnvyTo = 360s;
constexpr uint32_t kOsdDepth = 4;

// `profile`: `baa` (TOTAL-DSFQ in requests), or `sfq`, which knows nothing of other OSDs.
TieredResult RunOsds(Run& run, std::string_view profile, const Tiers& tiers,
                     const std::vector<double>& hits, std::vector<double> weights,
                     Duration to = kTo) {
  if (run.broken(Fault::kWeightsFrozen)) weights.assign(hits.size(), 1);
  Cluster cluster(run.seed());
  SchedulerConfig config = ProfileOf(profile, kOsdDepth);
  config.cost = CostKind::kRequests;
  for (size_t k = 0; k < 2; ++k) cluster.AddOsd(config, Exponential(tiers.capacity[k]));
  cluster.SendDelays(!run.broken(Fault::kDelayOff));
  SilenceBestEffort(&cluster);
  std::vector<Load*> loads;
  for (size_t i = 0; i < hits.size(); ++i) {
    cluster.SetClass(Spec(TierClientId(i), weights[i]));
    loads.push_back(cluster.Start({.class_id = TierClientId(i),
                                   .outstanding = 256,
                                   .bytes = 4096,
                                   .shape = [hit = hits[i]](Prng& prng, uint64_t, Io* io) {
                                     io->osd = prng.Chance(hit) ? 1 : 0;
                                   }}));
  }
  cluster.RunTo(kFrom);
  const std::vector<Duration> before{cluster.osd(0).busy_time(), cluster.osd(1).busy_time()};
  cluster.RunTo(to);
  TieredResult result;
  for (const Load* load : loads) result.iops.push_back(load->Iops(kFrom, to));
  for (size_t k = 0; k < 2; ++k) {
    result.busy.push_back(ToSeconds(cluster.osd(k).busy_time() - before[k]) /
                          ToSeconds(to - kFrom));
  }
  return result;
}

void NearParts(Run& run, const std::string& name, const std::vector<double>& measured,
               const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    run.NearPart(name + ", client " + std::to_string(i + 1), measured[i], expected[i], .04);
  }
}

void RunOverOsds(Run& run) {
  const Tiers five = HdAndSsd(200, 1000);
  const std::vector<double> hits{.75, .5, .9, .95};
  const auto weights = WeightsOf(TierPolicy::kBottleneckAware, five, hits);
  const TieredResult total = RunOsds(run, "baa", five, hits, weights);
  NearParts(run, "example V, TOTAL-DSFQ, IOPS", total.iops, {282.5, 141.3, 398.6, 377.6});
  const TieredResult apart = RunOsds(run, "sfq", five, hits, weights);
  run.AtLeast("example V, a fair queue per OSD: client 1 is off by",
              std::abs(apart.iops[0] / 282.5 - 1), .15, .195);
  // 15 % was asked for on the strength of one run (19.4 %). Both tiers are just full here, so how
  // a client's 256 requests are spread over them drifts slowly; eight seeds gave 14 to 18 %.
  run.AtLeast("example V, a fair queue per OSD: client 2 is off by",
              std::abs(apart.iops[1] / 141.3 - 1), .12, .194);

  const Tiers table = HdAndSsd(143.0, 2149.6);
  const std::vector<double> four{.2, .4, .98, 1.0};
  const TieredResult three =
      RunOsds(run, "baa", table, four, WeightsOf(TierPolicy::kBottleneckAware, table, four));
  NearParts(run, "table 3, TOTAL-DSFQ, IOPS", three.iops, {76.0, 101.4, 1068.3, 1046.9});

  // Limited by freedom of envy, so that the SSD is not full: only the closed loop of requests holds
  // back who could have more of it.
  const Tiers four_tiers = HdAndSsd(100, 5000);
  const std::vector<double> envious{.5, .99, .8};
  const TieredResult limited =
      RunOsds(run, "baa", four_tiers, envious,
              WeightsOf(TierPolicy::kBottleneckAware, four_tiers, envious), kEnvyTo);
  NearParts(run, "figure 4, TOTAL-DSFQ, IOPS", limited.iops, {66.7, 3333.3, 166.7});
  run.Near("figure 4, SSD busy", limited.busy[1], .693, .03);

  const TieredResult equal = RunOsds(run, "baa", HdAndSsd(100, 500), {.5, .9}, {1, 1});
  NearParts(run, "example I, equal weights, TOTAL-DSFQ, IOPS", equal.iops, {166.7, 166.7});
  run.Near("example I, equal weights, SSD busy", equal.busy[1], .47, .02);
}

}  // namespace

void AddTieredOsds(std::vector<Experiment>* all) {
  all->push_back(
      {"E30b", "BAA over OSDs of different tiers", "BAA §3.3 with DSFQ §3",
       "An HD OSD and an SSD OSD, cost 1 per request, weights from BAA, 256 "
       "outstanding per client. TOTAL-DSFQ realises the division without a central "
       "array, also where freedom of envy leaves the SSD idle (figure 4); a fair queue on "
       "each OSD does not.",
       RunOverOsds});
}

}  // namespace weir::sim
