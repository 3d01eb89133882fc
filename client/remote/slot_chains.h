// SlotChains: the chains as this mount knows them: those of the map, and newer ones that OSDs have
// answered with, each until a map has it or a newer one.
//
// Pure. Threads: not safe; under the lock of its owner.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "common/placement/cluster_map.h"

namespace weir::client {

class SlotChains {
 public:
  // Good until the next SetMap or Take.
  struct Place {
    uint32_t slot;
    const Chain* chain;
  };

  void SetMap(std::shared_ptr<const ClusterMap> map);
  // None: no map, no such pool, or it has no OSD.
  [[nodiscard]] std::optional<Place> Of(PoolId pool, ObjectId object) const;
  // Of a slot. Null: there is none.
  [[nodiscard]] const Chain* Find(PoolId pool, uint32_t slot) const;
  // False: it is known, or a newer one, or the map has no such slot.
  bool Take(PoolId pool, uint32_t slot, Chain chain);

 private:
  using Slot = std::pair<PoolId, uint32_t>;
  [[nodiscard]] const Chain* OfMap(PoolId pool, uint32_t slot) const;

  std::shared_ptr<const ClusterMap> map_;
  std::map<Slot, Chain> newer_;
};

}  // namespace weir::client
