#include "mds/service/evictions.h"

#include "common/base/log.h"
#include "mds/cluster/cluster_keeper.h"

namespace weir::mds {

void Evictions::Evict(const std::vector<uint64_t>& sessions) {
  std::vector<uint64_t> added;
  {
    const std::lock_guard lock(mutex_);
    for (const uint64_t session : sessions) {
      if (fenced_.try_emplace(session, UINT64_MAX).second) added.push_back(session);
    }
  }
  if (added.empty()) return;
  const Result<Epoch> epoch = keeper_.Fence(added);
  const std::lock_guard lock(mutex_);
  for (const uint64_t session : added) {
    if (epoch.ok()) {
      fenced_[session] = *epoch;
      continue;
    }
    WEIR_LOG_ERROR("session {:x} cannot be fenced: {}", session, epoch.status().message());
    fenced_.erase(session);
  }
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

bool Evictions::empty() const {
  const std::lock_guard lock(mutex_);
  return fenced_.empty();
}

bool Evictions::Evicting(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  return fenced_.contains(session);
}

}  // namespace weir::mds
