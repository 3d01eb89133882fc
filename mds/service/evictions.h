// Evictions: sessions that cannot be heard any more and hold what others wait for, or have files
// open for writing. One is fenced at every OSD first; only then does it lose its leases, its locks
// and what it has open, for it may still have data on its way. Threads: Evict and Tick one at a
// time; Evicting any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "common/base/ids.h"

namespace weir::mds {

class ClusterKeeper;

class Evictions {
 public:
  using Drop = std::function<void(uint64_t session)>;
  Evictions(ClusterKeeper& keeper, Drop drop) : keeper_(keeper), drop_(std::move(drop)) {}

  // Fences them, durably and in one map. When that fails it is tried again with the next call.
  void Evict(const std::vector<uint64_t>& sessions);
  // Drops those that every OSD which is up knows to be fenced.
  void Tick();
  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool Evicting(uint64_t session) const;

 private:
  ClusterKeeper& keeper_;
  const Drop drop_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Epoch> fenced_;  // not dropped yet
};

}  // namespace weir::mds
