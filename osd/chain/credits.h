// Credits: how many bytes of forwarded operations may be under way from this OSD to each other one,
// counted apart for each position in a path. Who holds some at a position waits for the next
// position only, so chains that cross cannot wait for each other in a circle. Position 0 is what
// clients have under way at this OSD as a head.
// One for all slots of an OSD. Pure. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/base/ids.h"

namespace weir::osd {

class Credits {
 public:
  static constexpr uint64_t kOverhead = 64;  // bytes that an operation counts beside its data

  explicit Credits(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  virtual ~Credits() = default;

  // One operation of `bytes` of data; any size fits where nothing is under way.
  [[nodiscard]] bool TryTake(OsdId to, size_t position, uint64_t bytes) {
    const uint64_t taken = taken_[{to, AccountOf(position)}];
    if (taken > 0 && taken + bytes + kOverhead > bytes_max_) return false;
    Take(to, position, bytes);
    return true;
  }
  // Beyond the bound: what was under way before the chain changed.
  void Take(OsdId to, size_t position, uint64_t bytes) {
    taken_[{to, AccountOf(position)}] += bytes + kOverhead;
  }
  void Give(OsdId to, size_t position, uint64_t bytes) {
    taken_[{to, AccountOf(position)}] -= bytes + kOverhead;
  }

 protected:
  [[nodiscard]] virtual size_t AccountOf(size_t position) const { return position; }

 private:
  const uint64_t bytes_max_;
  std::map<std::pair<OsdId, size_t>, uint64_t> taken_;
};

}  // namespace weir::osd
