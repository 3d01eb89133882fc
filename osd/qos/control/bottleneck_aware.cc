#include "osd/qos/control/bottleneck_aware.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/check.h"

namespace weir::osd::qos {

BottleneckAware::BottleneckAware(const Options& options, TimePoint now)
    : options_(options), observed_(now), last_solve_(now), next_solve_(now + options.period) {
  WEIR_CHECK(options.tiers.count >= 1 && options.tiers.count <= kTiersMax, "1 to 8 tiers");
}

BottleneckAware::Class& BottleneckAware::Find(ClassId id, TimePoint now) {
  const auto found = classes_.find(id);
  if (found != classes_.end()) return found->second;
  return classes_.emplace(id, Class{.window = HitWindow(options_.window, now)}).first->second;
}

void BottleneckAware::Count(ClassId id, size_t tier, TimePoint now) {
  Class& entry = Find(id, now);
  entry.counted = true;
  entry.window.Add(tier, now);
}

void BottleneckAware::Observe(std::span<const TierActivity> activity, TimePoint now) {
  WEIR_CHECK(activity.size() == options_.tiers.count, "one entry per tier");
  const Duration stretch = now - observed_;
  if (stretch <= Duration::zero()) return;
  for (size_t k = 0; k < activity.size(); ++k) meters_[k].Observe(activity[k], stretch);
  observed_ = now;
  if (options_.alarm && Alarmed(now)) next_solve_ = std::min(next_solve_, now);
}

bool BottleneckAware::Alarmed(TimePoint now) const {
  if (now - last_solve_ < kAlarmPause) return false;
  bool idle = false, full = false;
  for (size_t k = 0; k < options_.tiers.count; ++k) {
    idle |= meters_[k].busy() < kIdle;
    full |= meters_[k].busy() > TierMeter::kBusy;
  }
  return idle && full;
}

Tiers BottleneckAware::CurrentTiers() const {
  Tiers tiers = options_.tiers;
  for (size_t k = 0; k < tiers.count; ++k) {
    double& capacity = tiers.capacity[k];
    if (capacity <= 0) capacity = meters_[k].Capacity();
    if (capacity <= 0 && options_.nominal[k] > 0) {
      capacity = std::max(meters_[k].AtLeast(), options_.nominal[k]);
    }
  }
  return tiers;
}

void BottleneckAware::Configure(const AllocationConfig& config, TimePoint now) {
  options_.kind = config.kind;
  options_.alarm = config.alarm;
  options_.period = config.period > Duration::zero() ? config.period : Options{}.period;
  HitWindow::Options window;
  if (config.window > Duration::zero()) window = {.requests = 0, .span = config.window};
  const bool other_window =
      window.requests != options_.window.requests || window.span != options_.window.span;
  options_.window = window;
  for (auto& [id, entry] : classes_) {
    entry.applied = 0;
    if (!other_window) continue;
    entry.window = HitWindow(window, now);
    entry.counted = false;
  }
  next_solve_ = now + (other_window ? options_.period : Duration::zero());
}

BottleneckAllocation BottleneckAware::Allocate(const Tiers& tiers,
                                               const std::vector<TierClient>& clients) const {
  if (options_.kind == AllocationKind::kBottleneckAware) {
    return SolveBottleneckAware(tiers, clients);
  }
  BottleneckAllocation allocation;
  allocation.shares = FairShares(tiers, clients);
  allocation.rates = options_.kind == AllocationKind::kFair ? FairQueueingRates(tiers, clients)
                                                            : DominantResourceRates(tiers, clients);
  allocation.utilisation = Utilisation(tiers, clients, allocation.rates);
  allocation.total = std::accumulate(allocation.rates.begin(), allocation.rates.end(), 0.0);
  return allocation;
}

TierClient BottleneckAware::ClientOf(Class* entry, const Tiers& tiers, TimePoint now) const {
  TierClient client{.weight = entry->weight};
  if (entry->counted) {
    client.use = entry->window.Fractions(now);
    return client;
  }
  double sum = 0;
  for (size_t k = 0; k < tiers.count; ++k) sum += tiers.capacity[k];
  for (size_t k = 0; k < tiers.count; ++k) client.use[k] = tiers.capacity[k] / sum;
  return client;
}

std::vector<BottleneckAware::Weight> BottleneckAware::Tick(TimePoint now) {
  if (now < next_solve_) return {};
  next_solve_ = now + options_.period;
  const Tiers tiers = CurrentTiers();
  for (size_t k = 0; k < tiers.count; ++k) {
    if (tiers.capacity[k] <= 0) return {};
  }
  return Solve(tiers, now);
}

std::vector<BottleneckAware::Weight> BottleneckAware::Solve(const Tiers& tiers, TimePoint now) {
  std::vector<TierClient> active;
  std::vector<Weight> weights;
  double active_weight = 0;
  for (auto& [id, entry] : classes_) {
    if (entry.window.Samples(now) == 0) continue;
    active.push_back(ClientOf(&entry, tiers, now));
    active_weight += entry.weight;
  }
  last_solve_ = now;
  if (active.empty()) return {};
  ++solved_;
  allocation_ = Allocate(tiers, active);
  divisions_.clear();

  double sum = 0;
  size_t next = 0;
  for (auto& [id, entry] : classes_) {
    const bool is_active = entry.window.Samples(now) > 0;
    const TierClient client = ClientOf(&entry, tiers, now);
    // One that may begin any moment starts with its fair share.
    const double fair = RateAlone(tiers, client) * entry.weight / active_weight;
    const double rate = is_active ? allocation_.rates[next++] : fair;
    divisions_.push_back({.id = id,
                          .use = client.use,
                          .bottleneck = BottleneckOf(tiers, client),
                          .fair_rate = fair,
                          .rate = is_active ? rate : 0,
                          .active = is_active});
    weights.push_back({id, rate});
    sum += rate;
  }
  for (Weight& weight : weights) weight.weight /= sum;
  return IfMoved(std::move(weights));
}

std::vector<BottleneckAware::Weight> BottleneckAware::IfMoved(std::vector<Weight> weights) {
  const bool moved = std::any_of(weights.begin(), weights.end(), [this](const Weight& weight) {
    const double applied = classes_.at(weight.id).applied;
    return std::abs(weight.weight - applied) > kMoved * applied;
  });
  if (!moved) return {};
  for (const Weight& weight : weights) classes_.at(weight.id).applied = weight.weight;
  return weights;
}

}  // namespace weir::osd::qos
