#include "mds/service/evictions.h"

#include "common/base/log.h"
#include "mds/cluster/cluster_keeper.h"

namespace weir::mds {

void Evictions::Evict(uint64_t session) {
  if (Evicting(session)) return;
  {
    const std::lock_guard lock(mutex_);
    fenced_[session] = Epoch(UINT64_MAX);
  }
  const Result<Epoch> epoch = keeper_.Fence(session);
  const std::lock_guard lock(mutex_);
  if (epoch.ok()) {
    fenced_[session] = *epoch;
    return;
  }
  WEIR_LOG_ERROR("session {:x} cannot be fenced: {}", session, epoch.status().message());
  fenced_.erase(session);
}

void Evictions::Tick() {
  std::vector<uint64_t> gone;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [session, epoch] : fenced_) {
      if (keeper_.Fenced(epoch)) gone.push_back(session);
    }
  }
  for (const uint64_t session : gone) {
    drop_(session);
    const std::lock_guard lock(mutex_);
    fenced_.erase(session);
  }
}

bool Evictions::Evicting(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  return fenced_.contains(session);
}

}  // namespace weir::mds
