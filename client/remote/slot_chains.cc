#include "client/remote/slot_chains.h"

namespace weir::client {

void SlotChains::SetMap(std::shared_ptr<const ClusterMap> map) {
  map_ = std::move(map);
  std::erase_if(newer_, [this](const auto& known) {
    const Chain* const chain = OfMap(known.first.first, known.first.second);
    return chain == nullptr || chain->version >= known.second.version;
  });
}

const Chain* SlotChains::OfMap(PoolId pool, uint32_t slot) const {
  if (map_ == nullptr) return nullptr;
  const auto found = map_->pools.find(pool);
  if (found == map_->pools.end() || slot >= found->second.chains.size()) return nullptr;
  return &found->second.chains[slot];
}

const Chain* SlotChains::Find(PoolId pool, uint32_t slot) const {
  const auto newer = newer_.find({pool, slot});
  return newer == newer_.end() ? OfMap(pool, slot) : &newer->second;
}

std::optional<SlotChains::Place> SlotChains::Of(PoolId pool, ObjectId object) const {
  if (map_ == nullptr) return std::nullopt;
  const std::optional<uint32_t> slot = map_->SlotOf(pool, object);
  if (!slot.has_value()) return std::nullopt;
  const Chain* const chain = Find(pool, *slot);
  if (chain->empty()) return std::nullopt;
  return Place{*slot, chain};
}

bool SlotChains::Take(PoolId pool, uint32_t slot, Chain chain) {
  const Chain* const known = Find(pool, slot);
  if (known == nullptr || chain.empty() || known->version >= chain.version) return false;
  newer_[{pool, slot}] = std::move(chain);
  return true;
}

}  // namespace weir::client
