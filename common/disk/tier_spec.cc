#include "common/disk/tier_spec.h"

#include <algorithm>
#include <array>

#include "common/base/tier_name.h"
#include "common/disk/disk_spec.h"

namespace weir {
namespace {

constexpr std::array<std::string_view, 9> kDiskOptions{
    "model", "rate", "read-rate", "write-rate", "iops", "channels", "buffer", "ncq", "flush"};

bool IsDiskOption(std::string_view word) {
  return std::find(kDiskOptions.begin(), kDiskOptions.end(), word) != kDiskOptions.end();
}

Status Check(const std::vector<TierSpec>& tiers) {
  if (tiers.size() < 2 || tiers.size() > kTiersPerOsdMax) {
    return {ErrorCode::kInvalid,
            "an OSD has 2 to 8 tiers, as in ssd=/dev/nvme0n1,hdd=/dev/sdb "
            "(--disk is for one disk)"};
  }
  for (size_t i = 0; i < tiers.size(); ++i) {
    WEIR_RETURN_IF_ERROR(TierName::Parse(tiers[i].name).status());
    const auto disk = ParseDiskSpec(tiers[i].disk);
    if (!disk.ok()) return disk.status().Annotate("tier '" + tiers[i].name + "'");
    for (size_t k = 0; k < i; ++k) {
      if (tiers[k].name != tiers[i].name) continue;
      return {ErrorCode::kInvalid, "tier '" + tiers[i].name + "' stands twice"};
    }
  }
  return {};
}

}  // namespace

Result<std::vector<TierSpec>> ParseTierDisks(std::string_view text) {
  std::vector<TierSpec> tiers;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    const size_t equals = piece.find('=');
    const std::string_view name = piece.substr(0, equals);
    if (!tiers.empty() && IsDiskOption(name)) {
      tiers.back().disk += "," + std::string(piece);
      continue;
    }
    if (equals == std::string_view::npos || equals + 1 == piece.size()) {
      return Status(ErrorCode::kInvalid,
                    "tier '" + std::string(piece) + "': wants NAME=DISK, as in ssd=/dev/nvme0n1");
    }
    tiers.push_back({std::string(name), std::string(piece.substr(equals + 1))});
  }
  WEIR_RETURN_IF_ERROR(Check(tiers));
  return tiers;
}

std::string FormatTierDisks(const std::vector<TierSpec>& tiers) {
  std::string text;
  for (const TierSpec& tier : tiers) {
    if (!text.empty()) text += ',';
    text += tier.name + "=" + tier.disk;
  }
  return text;
}

}  // namespace weir
