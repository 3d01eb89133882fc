// LimitBook: the divider of limits over several OSDs (common/qos/limit_divider.h), kept to the map.
// In memory: for three seconds after our start no part grows, unless there is one mount only.
//
// Threads: any.
#pragma once

#include <memory>
#include <mutex>

#include "common/base/result.h"
#include "common/placement/cluster_map.h"
#include "common/qos/limit_divider.h"
#include "common/wire/mds.pb.h"

namespace weir::mds {

class LimitBook {
 public:
  explicit LimitBook(TimePoint now) : divider_(now) {}

  // More than there are classes in any cluster; beyond, requests are refused.
  static constexpr int kReportsMost = 4096;

  // Of a session that is open.
  Result<wire::DivideLimitsReply> Divide(const std::shared_ptr<const ClusterMap>& map,
                                         uint64_t session, const wire::DivideLimitsRequest& request,
                                         TimePoint now);
  // The session that asks is the only one, and was before our start.
  void NobodyElse();
  // The session has ended: others may have its parts.
  void MountGone(uint64_t session);

 private:
  std::mutex mutex_;
  LimitDivider divider_;
  std::shared_ptr<const ClusterMap> map_;  // that it was told
};

}  // namespace weir::mds
