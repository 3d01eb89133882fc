#include "mds/cluster/limit_book.h"

#include <vector>

#include "common/placement/divided_limits.h"

namespace weir::mds {

Result<wire::DivideLimitsReply> LimitBook::Divide(const std::shared_ptr<const ClusterMap>& map,
                                                  uint64_t session,
                                                  const wire::DivideLimitsRequest& request,
                                                  TimePoint now) {
  if (request.reports_size() > kReportsMost) {
    return {ErrorCode::kInvalid, "more reports than a mount can have classes"};
  }
  std::vector<LimitReport> reports;
  for (const wire::LimitReport& report : request.reports()) reports.push_back(FromWire(report));
  const std::lock_guard lock(mutex_);
  if (map_ == nullptr || map->epoch.value > map_->epoch.value) {
    map_ = map;
    divider_.SetLimits(DividedLimits(*map));
  }
  return ToWire(divider_.Divide(session, request.number(), reports, now));
}

void LimitBook::NobodyElse() {
  const std::lock_guard lock(mutex_);
  divider_.KnowsAll();
}

void LimitBook::MountGone(uint64_t session) {
  const std::lock_guard lock(mutex_);
  divider_.Gone(session);
}

}  // namespace weir::mds
