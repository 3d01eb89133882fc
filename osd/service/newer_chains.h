// NewerChains: which chain each slot of each pool has in the newest map, so that a request under an
// older one is refused and told the newer. Threads: one.
#pragma once

#include <map>
#include <vector>

#include "common/wire/map.pb.h"
#include "osd/store/object_store.h"

namespace weir::osd {

class NewerChains {
 public:
  void Apply(const wire::ClusterMap& map) {
    pools_.clear();
    for (const wire::PoolInfo& pool : map.pools()) {
      pools_[pool.id()].assign(pool.chains().begin(), pool.chains().end());
    }
  }
  // The chain of the slot if it is newer than `version`; null also when the slot is not known.
  [[nodiscard]] const wire::Chain* NewerThan(SlotId slot, uint64_t version) const {
    const auto pool = pools_.find(slot.pool);
    if (pool == pools_.end() || slot.slot >= pool->second.size()) return nullptr;
    const wire::Chain& chain = pool->second[slot.slot];
    return chain.version() > version ? &chain : nullptr;
  }

 private:
  std::map<uint32_t, std::vector<wire::Chain>> pools_;
};

}  // namespace weir::osd
