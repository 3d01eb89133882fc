#include "osd/qos/control/bulk_governor.h"

#include <algorithm>
#include <cmath>

namespace weir::osd::qos {

double BulkGovernor::Meter::Target() const {
  const auto ns = static_cast<double>(bound.count());
  const double wanted = alone > 0 ? kTimesAlone * alone : ns;
  return std::clamp(wanted, kPartOfBound * ns, kMostOfBound * ns);
}

void BulkGovernor::Waited(ClassId id, const ServiceContract& contract, Duration waited,
                          const Bulk& bulk, TimePoint now) {
  Meter& meter = meters_[id];
  // What it has alone does not depend on the bound.
  if (meter.part != contract.probability) meter = {.part = contract.probability, .last = now};
  meter.bound = contract.bound;
  if (now - meter.last > kRest) {  // what was waited then says nothing of now
    meter.samples.clear();
    LetGo();
  }
  meter.last = now;
  NoteServed(bulk.bytes, now);
  if (meter.samples.empty()) {
    meter.since = now;
    meter.bulk_bytes = bulk.bytes;
    meter.above = 0;
  }
  meter.samples.push_back(waited);
  if (static_cast<double>(waited.count()) > meter.Target()) ++meter.above;
  const size_t count = meter.samples.size();
  const double allowed = (1 - meter.part) * static_cast<double>(std::max(count, kSamples));
  const bool missed = static_cast<double>(meter.above) > allowed;
  if ((count < kSamples && !missed) || now - meter.since < kEvery) return;
  Learn(&meter, bulk.bytes == meter.bulk_bytes);
  const bool leads = std::all_of(meters_.begin(), meters_.end(), [&](const auto& one) {
    return now - one.second.last > kRest || one.second.Error() <= std::max(1.0, meter.Error());
  });
  if (bulk.guarded && leads) Step(id, &meter, now);
}

void BulkGovernor::NoteServed(uint64_t bulk_bytes, TimePoint now) {
  const Duration passed = now - counted_at_;
  if (passed < kEvery) return;
  const double lately = static_cast<double>(bulk_bytes - counted_) / ToSeconds(passed);
  served_ = passed > kRest ? lately : std::max(lately, (served_ + lately) / 2);
  counted_at_ = now;
  counted_ = bulk_bytes;
}

void BulkGovernor::Learn(Meter* meter, bool no_bulk) {
  std::vector<Duration>& samples = meter->samples;
  const auto rank = static_cast<size_t>(
      std::max(1.0, std::ceil(meter->part * static_cast<double>(samples.size()) - 1e-9)));
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(samples.begin(), at, samples.end());
  const auto measured = static_cast<double>(at->count());
  meter->quantile = measured;
  if (meter->alone == 0) {
    meter->alone = measured;
  } else if ((no_bulk && samples.size() >= kSamples) || measured < meter->alone) {
    meter->alone += (measured - meter->alone) / 8;
  }
  samples.clear();
}

void BulkGovernor::Step(ClassId id, Meter* meter, TimePoint now) {
  const double error = meter->Error();
  if (error <= 1 && futile_ == id) futile_.reset();
  if (now < rests_until_) return;
  most_ = std::max(most_, served_);
  if (!rate_) {
    if (error <= 1 || served_ <= 0) return;
    rate_ = served_;
    before_ = meter->quantile;
  }
  const bool broken = meter->quantile > static_cast<double>(meter->bound.count());
  const double factor = std::clamp(std::sqrt(1 / error), broken ? kDownBroken : kDown, kUp);
  rate_ = std::max(*rate_ * factor, most_ / kDeepest);
  if (factor >= 1 && *rate_ > kUnused * served_) return LetGo();
  if (error <= 1 || *rate_ > most_ / kDeepest) return deepest_since_.reset();
  if (!deepest_since_) deepest_since_ = now;
  if (now - *deepest_since_ < kFutile) return;
  meter->alone = meter->quantile;  // more is not to be had
  if (meter->quantile < kHelped * before_) return;
  futile_ = id;
  rests_until_ = now + kRest;
  LetGo();
}

void BulkGovernor::LetGo() {
  rate_.reset();
  most_ = 0;
  deepest_since_.reset();
}

BulkGovernor::View BulkGovernor::Of(ClassId id) const {
  const auto found = meters_.find(id);
  if (found == meters_.end() || found->second.quantile == 0) return {};
  const Meter& meter = found->second;
  return {.quantile = Duration(static_cast<int64_t>(meter.quantile)),
          .target = Duration(static_cast<int64_t>(meter.Target())),
          .futile = futile_ == id};
}

}  // namespace weir::osd::qos
