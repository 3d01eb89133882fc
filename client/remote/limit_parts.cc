#include "client/remote/limit_parts.h"

#include <algorithm>
#include <map>
#include <optional>

#include "common/placement/divided_limits.h"

namespace weir::client {

bool LimitParts::Wanted() {
  const std::lock_guard lock(mutex_);
  wanted_ = true;
  if (tell_at_ != TimePoint::Max()) return false;
  tell_at_ = TimePoint{0};
  return true;
}

TimePoint LimitParts::Poll() {
  const TimePoint now = clock_.Now();
  {
    const std::lock_guard lock(mutex_);
    if (now < tell_at_) return tell_at_;
    tell_at_ = now + kLimitReportInterval;
    wanted_ = false;
  }
  const bool more = Tell();
  Obey();
  const std::lock_guard lock(mutex_);
  if (!more && !wanted_) tell_at_ = TimePoint::Max();
  return tell_at_;
}

bool LimitParts::Tell() {
  const std::map<ClassId, LimitShare::Counts> counts = objects_.LimitCounts();
  std::optional<LimitShare::Request> request;
  {
    const std::lock_guard lock(mutex_);
    classes_.clear();
    for (const auto& [id, count] : counts) classes_.insert(id);
    if (asking_ != 0) return true;
    request = share_.Tell(counts, clock_.Now());
    if (!request) return false;
    asking_ = request->number;
  }
  wire::DivideLimitsRequest message;
  message.set_number(request->number);
  for (const LimitReport& report : request->reports) ToWire(report, message.add_reports());
  ask_(message, [this, number = request->number](const Result<wire::DivideLimitsReply>& reply) {
    Heard(number, reply);
  });
  return true;
}

void LimitParts::Heard(uint64_t number, const Result<wire::DivideLimitsReply>& reply) {
  bool soon = false;
  {
    const std::lock_guard lock(mutex_);
    if (number != asking_) return;
    asking_ = 0;
    if (!reply.ok()) return;
    soon = share_.Heard(number, FromWire(*reply), clock_.Now());
  }
  Obey();
  if (soon) (void)Tell();
}

void LimitParts::Obey() {
  std::map<ClassId, double> parts;
  uint64_t order = 0;
  {
    const std::lock_guard lock(mutex_);
    order = ++obeyed_;
    const TimePoint now = clock_.Now();
    for (const ClassId id : classes_) parts[id] = share_.PartOf(id, now);
  }
  objects_.SetLimitParts(std::move(parts), order);
}

}  // namespace weir::client
