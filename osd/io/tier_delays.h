// TierDelays: the coordinator of DSFQ inside an OSD of several tiers. To the scheduler of one tier
// the others are what other OSDs are: what a class was served there counts in its delay, so that
// weights hold for the total over the tiers (DSFQ §3.2 eq. 7; RULES.md A35).
//
// A request brings the delay of its coordinator, which knows the OSD only; here it becomes that of
// the tier: everything since the class's last request to it, on other OSDs and on other tiers.
//
// Units: those of the OSD's cost, tokens of 1 KiB or requests. Threads: one owner. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "common/base/ids.h"
#include "osd/qos/control/tier_model.h"

namespace weir::osd {

class TierDelays {
 public:
  // A request of that cost goes to `tier`; `elsewhere` is what it brought. Returns its delay there.
  int64_t OnRequest(ClassId id, size_t tier, int64_t elsewhere, int64_t cost) {
    PerTier& pending = pending_[id];
    const int64_t delay = std::min(pending[tier] + elsewhere, kMost);
    for (int64_t& sum : pending) sum = std::min(sum + elsewhere + cost, kMost);
    pending[tier] = 0;
    return delay;
  }
  void Forget(ClassId id) { pending_.erase(id); }

 private:
  static constexpr int64_t kMost = int64_t{1} << 40;  // as ObjectService takes from outside
  using PerTier = std::array<int64_t, qos::kTiersMax>;
  std::unordered_map<ClassId, PerTier> pending_;
};

}  // namespace weir::osd
