#include "osd/qos/control/bound_setpoint.h"

#include <algorithm>
#include <cmath>

namespace weir::osd::qos {

Duration BoundSetpoint::Meter::Target() const {
  return FromSeconds(kPartOfBound * ToSeconds(contract.bound));
}

// Whatever comes yet, so many late ones are more than a whole window may have.
bool BoundSetpoint::Meter::Exceeds(size_t late) const {
  const auto count = static_cast<double>(std::max(samples.size(), kSamples));
  return static_cast<double>(late) > (1 - contract.probability) * count;
}

bool BoundSetpoint::Meter::IsWhole(TimePoint now) const {
  const Duration passed = now - since;
  if (samples.size() >= kSamples || Exceeds(above)) return passed >= kEvery;
  // Of fewer the quantile would be the longest.
  const double enough = 2 / (1 - contract.probability);
  return passed >= kStale && static_cast<double>(samples.size()) >= enough;
}

void BoundSetpoint::Meter::Measure(TimePoint now) {
  const auto count = static_cast<double>(samples.size());
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(contract.probability * count)));
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::min(rank, samples.size()) - 1);
  std::nth_element(samples.begin(), at, samples.end());
  quantile = *at;
  measured_at = now;
  samples.clear();
}

void BoundSetpoint::Waited(ClassId id, const ServiceContract& contract, Duration waited, bool held,
                           TimePoint now) {
  Meter& meter = meters_[id];
  const bool same =
      meter.contract.bound == contract.bound && meter.contract.probability == contract.probability;
  if (!same || now - meter.heard_at > kSilent) {
    meter = {};
    meter.contract = contract;
    pressure_ = least_;  // others found what was right without it
  }
  meter.heard_at = now;
  if (meter.samples.empty()) {
    meter.since = now;
    meter.above = 0;
    meter.broken = 0;
  }
  meter.samples.push_back(waited);
  if (waited > meter.Target()) ++meter.above;
  if (waited > contract.bound) ++meter.broken;
  if (!meter.IsWhole(now)) return;
  const bool broken = meter.Exceeds(meter.broken);
  meter.Measure(now);
  const bool leads = std::all_of(meters_.begin(), meters_.end(), [&](const auto& one) {
    return now - one.second.measured_at > kSilent ||
           one.second.Error() <= std::max(1.0, meter.Error());
  });
  if (leads) Step(meter, broken, held, now);
}

void BoundSetpoint::Forget(ClassId id) {
  meters_.erase(id);
  if (meters_.empty()) pressure_ = least_;
}

void BoundSetpoint::Step(const Meter& meter, bool broken, bool held, TimePoint now) {
  const double error = meter.Error();
  if (error > 1) {
    missed_at_ = now;
    if (!broken && now - lowered_at_ < kSettle) return;
    lowered_at_ = now;
  } else {
    if (!held || now - missed_at_ < kClean || now - raised_at_ < kEvery) return;
    raised_at_ = now;
  }
  const double factor = std::clamp(error > 0 ? 1 / error : kUp, kDown, kUp);
  pressure_ = broken ? least_ : std::clamp(pressure_ * factor, least_, std::max(least_, kMost));
}

BoundSetpoint::View BoundSetpoint::Of(ClassId id, TimePoint now) const {
  const auto found = meters_.find(id);
  if (found == meters_.end() || least_ >= kMost) return {};
  const Meter& meter = found->second;
  if (now - meter.heard_at > kSilent) return {};
  return {.quantile = meter.quantile, .target = meter.Target()};
}

}  // namespace weir::osd::qos
