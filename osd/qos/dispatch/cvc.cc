#include "osd/qos/dispatch/cvc.h"

#include <algorithm>
#include <cmath>

namespace weir::osd::qos {
namespace {

// s follows the measured mean only when that moved: a new s costs a walk over the whole tree.
constexpr double kWorthMoving = 0.05;

}  // namespace

Duration Cvc::ShortestService() const {
  if (config_.iops_max > 0) return FromSeconds(1 / config_.iops_max);
  return service_time_->Mean();
}

Duration Cvc::Estimate(const Request& request) const {
  return config_.fixed_estimate != Duration(0) ? config_.fixed_estimate
                                               : service_time_->Estimate(request.op);
}

bool Cvc::Fits(const Request& request, const DispatchMoment& moment) {
  const Duration estimate = Estimate(request);
  if (estimate == Duration::min()) return true;
  if (estimate == Duration::max()) return false;
  const int64_t latest = by_finish_.LatestStart();
  if (latest == FinishOrder::kNever) return true;
  const Duration before = service_time_->Mean() * static_cast<int64_t>(moment.in_flight);
  return moment.now + before + estimate <= TimePoint{latest};
}

Request* Cvc::Choose(const DispatchMoment& moment) {
  Request* finishes_first = by_finish_.empty() ? nullptr : by_finish_.First();
  if (finish_order_only_) return finishes_first;
  if (finishes_first == nullptr || moment.by_address) return elevator_.First(entered().front());
  if (config_.late_mode && finishes_first->finish_time < moment.now) {
    return elevator_.FirstPromised(finishes_first);
  }
  if (config_.run_max > 0 && run_ >= config_.run_max) return finishes_first;
  const size_t tries = std::min<size_t>(config_.candidates, size());
  Request* candidate = nullptr;
  for (size_t i = 0; i < tries; ++i) {
    candidate = i == 0 ? elevator_.First(entered().front()) : elevator_.After(*candidate);
    if (Fits(*candidate, moment)) return candidate;
  }
  return finishes_first;
}

Request* Cvc::DoPeek(const DispatchMoment& moment) {
  if (config_.iops_max <= 0 && !by_finish_.empty()) {
    const auto now = static_cast<double>(ShortestService().count());
    const auto used = static_cast<double>(by_finish_.service().count());
    if (std::abs(now - used) > kWorthMoving * used) by_finish_.SetService(ShortestService());
  }
  Request* chosen = Choose(moment);
  run_ = by_finish_.empty() || chosen == by_finish_.First() ? 0 : run_ + 1;
  elevator_.Served(*chosen);
  return chosen;
}

Request* Cvc::Urgent() const {
  Request* first = by_finish_.empty() ? nullptr : by_finish_.First();
  return first != nullptr && first->finish_time != TimePoint::Max() ? first : nullptr;
}

// A request without a deadline can neither be first in finish order nor pull a latest start
// forward.
bool Cvc::InFinishOrder(const Request& request) const {
  return finish_order_only_ || request.finish_time != TimePoint::Max();
}

// VC asks no elevator.
void Cvc::DoAdd(Request* request) {
  const bool promised = InFinishOrder(*request);
  if (!finish_order_only_) elevator_.Add(request, promised);
  if (promised) by_finish_.Add(request);
}

void Cvc::DoRemove(Request* request) {
  const bool promised = InFinishOrder(*request);
  if (!finish_order_only_) elevator_.Remove(*request, promised);
  if (promised) by_finish_.Remove(*request);
}

}  // namespace weir::osd::qos
