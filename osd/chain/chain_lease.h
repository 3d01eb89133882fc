// ChainLease: until when a member may answer reads. It may as long as the leader, or all other
// serving members of its chain, have granted it within the lease, each counted from when it asked.
// Times are CLOCK_BOOTTIME: a suspended machine's lease runs out. Pure. Threads: one.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "common/replication/chain.h"

namespace weir::osd {

class ChainLease {
 public:
  // Grants count for one chain version.
  void Reset() {
    by_leader_ = {};
    by_member_.clear();
  }
  void GrantedByLeader(TimePoint asked_at) { by_leader_ = std::max(by_leader_, asked_at); }
  void GrantedBy(OsdId member, TimePoint asked_at) {
    TimePoint& latest = by_member_[member];
    latest = std::max(latest, asked_at);
  }
  // Requires: `self` serves in `chain`.
  [[nodiscard]] bool Holds(const replication::Chain& chain, OsdId self, TimePoint now) const {
    if (Fresh(by_leader_, now)) return true;
    for (const replication::Member& member : chain.members) {
      if (member.state != replication::MemberState::kServing || member.osd == self) continue;
      const auto granted = by_member_.find(member.osd);
      if (granted == by_member_.end() || !Fresh(granted->second, now)) return false;
    }
    return true;
  }

 private:
  static bool Fresh(TimePoint asked_at, TimePoint now) {
    return asked_at.ns != 0 && now < asked_at + replication::kLease;
  }
  TimePoint by_leader_;
  std::map<OsdId, TimePoint> by_member_;
};

}  // namespace weir::osd
