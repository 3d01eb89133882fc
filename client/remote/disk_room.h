// DiskRoom: what the disks said lately, in their answers to writes, that they still take.
//
// A mount holds written data in memory only while there is room for it (client/data/file_io.h). The
// map says near_full a second or two after it is true; this bridges that time, and is forgotten
// after it, as nobody says when room comes back where nobody writes.
//
// Threads: Told and Forget under the lock of the owner; least from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>

#include "common/base/ids.h"
#include "common/base/tier_name.h"
#include "common/base/time.h"

namespace weir::client {

class DiskRoom {
 public:
  static constexpr Duration kValid = std::chrono::seconds(5);

  void Told(OsdId osd, TierName tier, uint64_t free_bytes, TimePoint now);
  // What was told so long ago that it says nothing any more.
  void Forget(TimePoint now);
  // Of any disk; UINT64_MAX: nothing was told lately.
  [[nodiscard]] uint64_t least() const { return least_; }

 private:
  struct Disk {
    uint64_t free_bytes = 0;
    TimePoint told;
  };
  void FindLeast();

  std::map<std::pair<OsdId, TierName>, Disk> disks_;
  std::atomic<uint64_t> least_{UINT64_MAX};
};

}  // namespace weir::client
