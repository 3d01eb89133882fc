#include "tools/sim/engine/limit_division.h"

#include <optional>
#include <utility>

namespace weir::sim {
namespace {

constexpr Duration kOneWay = std::chrono::microseconds(200);

}  // namespace

LimitDivision::LimitDivision(EventQueue* events, Hooks hooks)
    : events_(events), hooks_(std::move(hooks)), divider_(events->now()) {
  divider_.KnowsAll();
}

double LimitDivision::PartOf(size_t coordinator, ClassId id) const {
  const auto mount = mounts_.find(coordinator);
  return mount == mounts_.end() ? 0 : mount->second.share.PartOf(id, events_->now());
}

void LimitDivision::Wanted(size_t coordinator) {
  if (std::exchange(mounts_[coordinator].reports, true)) return;
  events_->After(Duration(0), [this, coordinator] { Poll(coordinator); });
}

void LimitDivision::Poll(size_t coordinator) {
  Mount& mount = mounts_[coordinator];
  mount.reports = Tell(coordinator);
  hooks_.obey(coordinator);
  if (!mount.reports) return;
  events_->After(kLimitReportInterval, [this, coordinator] { Poll(coordinator); });
}

bool LimitDivision::Tell(size_t coordinator) {
  Mount& mount = mounts_[coordinator];
  if (mount.asks) return true;
  auto request = mount.share.Tell(hooks_.counts(coordinator), events_->now());
  if (!request) return false;
  mount.asks = true;
  events_->After(kOneWay, [this, coordinator, request = *std::move(request)] {
    auto parts = divider_.Divide(coordinator, request.number, request.reports, events_->now());
    events_->After(kOneWay, [this, coordinator, number = request.number, parts = std::move(parts)] {
      Heard(coordinator, number, parts);
    });
  });
  return true;
}

void LimitDivision::Heard(size_t coordinator, uint64_t number,
                          const std::vector<LimitPart>& parts) {
  Mount& mount = mounts_[coordinator];
  mount.asks = false;
  const bool soon = mount.share.Heard(number, parts, events_->now());
  hooks_.obey(coordinator);
  if (soon) (void)Tell(coordinator);
}

}  // namespace weir::sim
