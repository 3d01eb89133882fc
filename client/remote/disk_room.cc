#include "client/remote/disk_room.h"

#include <algorithm>

namespace weir::client {

void DiskRoom::Told(OsdId osd, TierName tier, uint64_t free_bytes, TimePoint now) {
  Disk& disk = disks_[{osd, tier}];
  const bool was_least = disk.free_bytes <= least_;
  disk = {free_bytes, now};
  if (free_bytes <= least_) {
    least_ = free_bytes;
  } else if (was_least) {
    FindLeast();
  }
}

void DiskRoom::Forget(TimePoint now) {
  if (std::erase_if(disks_, [now](const auto& one) { return now - one.second.told > kValid; }) > 0)
    FindLeast();
}

void DiskRoom::FindLeast() {
  uint64_t least = UINT64_MAX;
  for (const auto& [key, disk] : disks_) least = std::min(least, disk.free_bytes);
  least_ = least;
}

}  // namespace weir::client
