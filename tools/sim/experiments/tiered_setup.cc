#include "tools/sim/experiments/tiered_setup.h"

#include <numeric>

#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kOutstanding = 256;  // per client: always backlogged on both tiers
constexpr Duration kFrom = 20s, kTo = 170s;

}  // namespace

osd::qos::Tiers HdAndSsd(double hd_iops, double ssd_iops) {
  return {.count = 2, .capacity = {hd_iops, ssd_iops}};
}

std::vector<osd::qos::TierClient> ClientsOf(const std::vector<double>& hits) {
  std::vector<osd::qos::TierClient> clients;
  clients.reserve(hits.size());
  for (const double hit : hits) clients.push_back({.use = {1 - hit, hit}});
  return clients;
}

std::function<void(Prng&, uint64_t, Io*)> HitsOf(double hit) {
  return [hit](Prng& prng, uint64_t, Io* io) {
    io->tier = prng.Chance(hit) ? 1 : 0;
    io->op = osd::qos::OpKind::kRead;
  };
}

TieredArray::TieredArray(uint64_t seed, const osd::qos::Tiers& tiers) : cluster_(seed) {
  cluster_.AddOsd(ProfileOf("baa", kArrayDepth),
                  Tiered({Exponential(tiers.capacity[0]), Exponential(tiers.capacity[1])}));
  SilenceBestEffort(&cluster_);
}

void TieredArray::Start(const std::vector<double>& hits) {
  hits_ = hits;
  for (size_t i = 0; i < hits.size(); ++i) {
    cluster_.SetClass(Spec(TierClientId(i)));
    loads_.push_back(cluster_.Start(
        {.class_id = TierClientId(i),
         .outstanding = kOutstanding,
         .bytes = 4096,
         .shape = [this, i](Prng& prng, uint64_t n, Io* io) { HitsOf(hits_[i])(prng, n, io); }}));
  }
}

void TieredArray::SetWeights(const std::vector<double>& weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    cluster_.SetClass(Spec(TierClientId(i), weights[i]));
  }
}

double TieredResult::total() const {
  return std::accumulate(iops.begin(), iops.end(), 0.0);
}

LoopedArray::LoopedArray(uint64_t seed, const osd::qos::BottleneckAware::Options& options,
                         const std::vector<double>& hits)
    : array_(seed, options.tiers), loop_(options, TimePoint{}) {
  array_.cluster().osd().on_dispatch = [this](const Job& job) {
    loop_.Count(job.request.class_id, job.io.tier, Now());
  };
  array_.Start(hits);
  Watch();
}

void LoopedArray::Watch() {
  array_.cluster().events().After(1s, [this] {
    std::vector<osd::qos::TierActivity> activity;
    for (size_t k = 0; k < 2; ++k) {
      const uint64_t completed = array_.device().completed(k);
      const Duration busy = array_.device().busy(k);
      activity.push_back({completed - completed_[k], busy - busy_[k]});
      completed_[k] = completed;
      busy_[k] = busy;
    }
    loop_.Observe(activity, Now());
    if (!frozen_) {
      for (const auto& [id, weight] : loop_.Tick(Now()))
        array_.cluster().SetClass(Spec(id, weight));
    }
    Watch();
  });
}

namespace {

TieredResult Measure(TieredArray* array, size_t clients) {
  array->cluster().RunTo(kFrom);
  const std::vector<Duration> before{array->device().busy(0), array->device().busy(1)};
  array->cluster().RunTo(kTo);
  TieredResult result;
  for (size_t i = 0; i < clients; ++i) result.iops.push_back(array->Iops(i, kFrom, kTo));
  for (size_t k = 0; k < before.size(); ++k) {
    result.busy.push_back(ToSeconds(array->device().busy(k) - before[k]) / ToSeconds(kTo - kFrom));
  }
  return result;
}

}  // namespace

TieredResult RunLoop(Run& run, AllocationKind kind, const osd::qos::Tiers& tiers,
                     const std::vector<double>& hits) {
  osd::qos::BottleneckAware::Options options{.tiers = tiers, .kind = kind};
  options.window = {.requests = 0, .span = run.broken(Fault::kWindowShort) ? 10ms : 60s};
  LoopedArray looped(run.seed(), options, hits);
  if (run.broken(Fault::kWeightsFrozen)) looped.Freeze();
  return Measure(&looped.array(), hits.size());
}

TieredResult RunArray(Run& run, const osd::qos::Tiers& tiers, const std::vector<double>& hits,
                      std::vector<double> weights) {
  if (run.broken(Fault::kWeightsFrozen)) weights.assign(hits.size(), 1);
  TieredArray array(run.seed(), tiers);
  array.Start(hits);
  array.SetWeights(weights);
  return Measure(&array, hits.size());
}

std::vector<double> WeightsOf(TierPolicy policy, const osd::qos::Tiers& tiers,
                              const std::vector<double>& hits) {
  const std::vector<osd::qos::TierClient> clients = ClientsOf(hits);
  switch (policy) {
    case TierPolicy::kFairQueueing:
      return osd::qos::FairQueueingRates(tiers, clients);
    case TierPolicy::kDominantResource:
      return osd::qos::DominantResourceRates(tiers, clients);
    case TierPolicy::kBottleneckAware:
      return osd::qos::SolveBottleneckAware(tiers, clients).rates;
  }
  return {};
}

}  // namespace weir::sim
