#include "tools/sim/scenario/tier_loop.h"

#include <vector>

namespace weir::sim {
namespace {

using osd::qos::BottleneckAware;

constexpr Duration kLook = std::chrono::seconds(1);
// What a tier is taken to do before it was seen full, as TierSet takes it.
constexpr double kNominalRequests = 1;

BottleneckAware::Options LoopOptions(const std::vector<TierSpec>& tiers) {
  BottleneckAware::Options options;
  options.tiers.count = tiers.size();
  for (size_t k = 0; k < tiers.size(); ++k) {
    options.tiers.capacity[k] = tiers[k].capacity;
    options.nominal[k] = kNominalRequests;
  }
  return options;
}

}  // namespace

TierLoop::TierLoop(Cluster* cluster, size_t osd, const std::vector<TierSpec>& tiers,
                   const AllocationConfig& config)
    : cluster_(cluster), osd_(osd), kind_(config.kind), loop_(LoopOptions(tiers), TimePoint{}) {
  loop_.Configure(config, TimePoint{});
  cluster_->osd(osd_).on_dispatch = [this](const Job& job) {
    loop_.Count(job.request.class_id, job.io.tier, cluster_->events().now());
  };
  classes_[kBestEffort] = Spec(kBestEffort);
  Look();
}

void TierLoop::Add(const ClassSpec& spec) {
  classes_[spec.id] = spec;
  loop_.SetWeight(spec.id, spec.weight, cluster_->events().now());
}

void TierLoop::Look() {
  cluster_->events().After(kLook, [this] {
    const TimePoint now = cluster_->events().now();
    std::vector<osd::qos::TierActivity> since;
    for (size_t k = 0; k < device().tiers(); ++k) {
      const uint64_t completed = device().completed(k);
      const Duration busy = device().busy(k);
      since.push_back({completed - completed_[k], busy - busy_[k]});
      completed_[k] = completed;
      busy_[k] = busy;
    }
    loop_.Observe(since, now);
    const auto weights = loop_.Tick(now);
    if (kind_ != AllocationKind::kFair && !weights.empty()) Apply(weights);
    Look();
  });
}

// Their sum is that of the operator's weights.
void TierLoop::Apply(const std::vector<BottleneckAware::Weight>& weights) {
  double operators = 0;
  double shared = 0;
  for (const auto& [id, weight] : weights) {
    operators += classes_.contains(id) ? classes_[id].weight : 0;
    shared += weight;
  }
  for (const auto& [id, share] : weights) {
    const auto known = classes_.find(id);
    if (known == classes_.end() || share <= 0) continue;
    ClassSpec spec = known->second;
    const double weight = share / shared * operators;
    spec.min_weight *= weight / spec.weight;
    spec.weight = weight;
    cluster_->osd(osd_).policy().SetClass(spec, cluster_->events().now());
  }
  cluster_->osd(osd_).Pump();
}

}  // namespace weir::sim
