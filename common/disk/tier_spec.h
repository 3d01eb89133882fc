// TierSpec: what people write after --tier-disk: the disks of one OSD, fastest first by custom.
//
//   NAME=DISK,NAME=DISK...    ssd=/dev/nvme0n1,hdd=/dev/sdb    ssd=ssd:4GiB,iops=1000,hdd=hdd:20GiB
//
// NAME as in common/base/tier_name.h, DISK as in disk_spec.h. An option of an emulated disk
// belongs to the disk before it, so its word (iops, rate ...) names no tier. Files whose layout
// names none go to the first.
//
// Errors: kInvalid names the word, what is wrong and what is right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace weir {

inline constexpr size_t kTiersPerOsdMax = 8;

struct TierSpec {
  std::string name;
  std::string disk;
};

// 2 to 8 of them.
Result<std::vector<TierSpec>> ParseTierDisks(std::string_view text);
// The other way round.
std::string FormatTierDisks(const std::vector<TierSpec>& tiers);

}  // namespace weir
