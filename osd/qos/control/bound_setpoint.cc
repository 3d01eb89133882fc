#include "osd/qos/control/bound_setpoint.h"

#include <algorithm>
#include <cmath>

namespace weir::osd::qos {

void BoundSetpoint::SetLeast(double pressure) {
  least_ = pressure_ = pressure;
}

Duration BoundSetpoint::Meter::Target() const {
  return FromSeconds(kPartOfBound * ToSeconds(contract.bound));
}

// Whatever comes yet, the quantile of a whole window is above the target.
bool BoundSetpoint::Meter::IsMissed() const {
  const auto count = static_cast<double>(std::max(samples.size(), kSamples));
  return static_cast<double>(above) > (1 - contract.probability) * count;
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
  if (meter.contract.bound != contract.bound ||
      meter.contract.probability != contract.probability) {
    meter = {};
  }
  meter.contract = contract;
  if (meter.samples.empty() || now - meter.since > kSilent) {
    meter.samples.clear();
    meter.since = now;
    meter.above = 0;
  }
  meter.samples.push_back(waited);
  if (waited > meter.Target()) ++meter.above;
  const Duration passed = now - meter.since;
  const bool whole = meter.samples.size() >= kSamples || meter.IsMissed();
  if (passed < (whole ? kEvery : kStale)) return;
  meter.Measure(now);
  const bool leads = std::all_of(meters_.begin(), meters_.end(), [&](const auto& one) {
    return now - one.second.measured_at > kSilent ||
           one.second.Error() <= std::max(1.0, meter.Error());
  });
  if (leads) Step(meter, held, now);
}

void BoundSetpoint::Step(const Meter& meter, bool held, TimePoint now) {
  const double error = meter.Error();
  if (error > 1) missed_at_ = now;
  if (error <= 1 && (!held || now - missed_at_ < kClean)) return;
  const bool broken = meter.quantile > meter.contract.bound;
  if (error > 1 && !broken && now - lowered_at_ < kSettle) return;
  if (error > 1) lowered_at_ = now;
  const double factor = std::clamp(error > 0 ? 1 / error : kUp, kDown, kUp);
  pressure_ = broken ? least_ : std::clamp(pressure_ * factor, least_, std::max(least_, kMost));
}

BoundSetpoint::View BoundSetpoint::Of(ClassId id) const {
  const auto found = meters_.find(id);
  if (found == meters_.end()) return {};
  return {.quantile = found->second.quantile, .target = found->second.Target()};
}

}  // namespace weir::osd::qos
