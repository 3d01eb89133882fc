#include "osd/store/superblock.h"

#include <algorithm>

#include "common/base/crc32c.h"
#include "common/disk/raw_format.h"

namespace weir::osd {
namespace {

uint32_t CrcOf(const Buffer& block) {
  Buffer copy = Buffer::Aligned(kBlockSize);
  std::memcpy(copy.data(), block.data(), kBlockSize);
  std::memset(copy.data() + offsetof(Superblock, crc), 0, sizeof(uint32_t));
  return Crc32c(copy.data(), kBlockSize);
}

bool HasMagic(const Superblock& super) {
  return std::memcmp(super.magic, kSuperMagic, sizeof kSuperMagic) == 0;
}

// A region that does not fit the device would be read and written outside of it.
bool GeometryFits(const Superblock& super, uint64_t size) {
  const auto fits = [size](uint64_t offset, uint64_t length) {
    return offset % kBlockSize == 0 && length % kBlockSize == 0 && offset >= kHeadBytes &&
           offset <= size && length <= size - offset;
  };
  return super.device_bytes <= size && fits(super.kv_offset, super.kv_bytes) &&
         fits(super.data_offset, super.data_bytes) &&
         super.kv_offset + super.kv_bytes <= super.data_offset;
}

// What a superblock would describe is there although neither copy is.
Result<bool> HasLostItsHead(BlockDevice& device) {
  for (const uint64_t offset : {kHeadBytes, kHeadBytes + kBlockSize}) {
    if (offset + kBlockSize > device.size()) return false;
    Buffer block = Buffer::Aligned(kBlockSize);
    WEIR_RETURN_IF_ERROR(device.Read(offset, block));
    raw::Superblock volume;
    std::memcpy(&volume, block.data(), sizeof volume);
    if (volume.magic == raw::kSuperMagic) return true;
  }
  return false;
}

std::string_view TextOf(const char (&field)[48]) {
  return {field, strnlen(field, sizeof field)};
}

Status SetText(std::string_view text, std::string_view what, char (&field)[48]) {
  if (text.size() >= sizeof field) {
    return {ErrorCode::kInvalid, std::string(what) + " is longer than 47 characters"};
  }
  std::memset(field, 0, sizeof field);
  std::memcpy(field, text.data(), text.size());
  return {};
}

}  // namespace

Result<Superblock> LoadSuperblock(BlockDevice& device) {
  bool seen = false, found = false;
  Superblock best{};
  for (const uint64_t offset : kSuperOffsets) {
    if (offset + kBlockSize > device.size()) break;
    Buffer block = Buffer::Aligned(kBlockSize);
    WEIR_RETURN_IF_ERROR(device.Read(offset, block));
    Superblock super;
    std::memcpy(&super, block.data(), sizeof super);
    if (!HasMagic(super)) continue;
    seen = true;
    if (CrcOf(block) != super.crc) continue;
    if (!found || super.generation > best.generation) best = super;
    found = true;
  }
  if (!seen) {
    WEIR_ASSIGN_OR_RETURN(const bool damaged, HasLostItsHead(device));
    if (!damaged) return {ErrorCode::kNotFound, device.name() + ": no WeirFS superblock"};
  }
  if (!found) {
    return {ErrorCode::kCorrupt, device.name() + ": both WeirFS superblocks are damaged"};
  }
  const bool known = best.version >= kOldestFormatVersion && best.version <= kFormatVersion;
  if (!known || (best.feature_flags & ~kFeatureTier) != 0) {
    return {ErrorCode::kNotSupported,
            device.name() + ": WeirFS disk format " + std::to_string(best.version) +
                " is not known to this version; use the one that wrote it, or a newer"};
  }
  if (!GeometryFits(best, device.size())) {
    return {ErrorCode::kCorrupt, device.name() + ": smaller than when it was formatted"};
  }
  return best;
}

Result<Superblock> LoadSuperblockCopy(BlockDevice& device, uint64_t offset) {
  Buffer block = Buffer::Aligned(kBlockSize);
  WEIR_RETURN_IF_ERROR(device.Read(offset, block));
  Superblock super;
  std::memcpy(&super, block.data(), sizeof super);
  if (HasMagic(super) && CrcOf(block) == super.crc) return super;
  return {ErrorCode::kCorrupt,
          device.name() + ": no valid superblock at " + std::to_string(offset)};
}

Status StoreSuperblock(BlockDevice& device, Superblock super) {
  Buffer block = Buffer::AlignedZeros(kBlockSize);
  super.crc = 0;
  std::memcpy(block.data(), &super, sizeof super);
  super.crc = CrcOf(block);
  std::memcpy(block.data(), &super, sizeof super);
  for (const uint64_t offset : kSuperOffsets) {
    WEIR_RETURN_IF_ERROR(device.Write(offset, block));
    WEIR_RETURN_IF_ERROR(device.Flush());
  }
  return {};
}

OsdIdentity IdentityOf(const Superblock& super) {
  return {.cluster_uuid = std::string(TextOf(super.cluster_uuid)),
          .osd_uuid = std::string(TextOf(super.osd_uuid)),
          .osd_id = super.osd_id,
          .token_rate = super.token_rate,
          .tier = std::string(super.tier, strnlen(super.tier, sizeof super.tier)),
          .tier_index = super.tier_index,
          .tiers = super.tiers,
          .life = super.life};
}

Status SetIdentity(const OsdIdentity& identity, Superblock* super) {
  WEIR_RETURN_IF_ERROR(SetText(identity.cluster_uuid, "the cluster uuid", super->cluster_uuid));
  WEIR_RETURN_IF_ERROR(SetText(identity.osd_uuid, "the OSD uuid", super->osd_uuid));
  super->osd_id = identity.osd_id;
  super->token_rate = identity.token_rate;
  if (identity.tier.size() > sizeof super->tier) {
    return {ErrorCode::kInvalid, "the name of a tier is longer than 8 characters"};
  }
  std::memset(super->tier, 0, sizeof super->tier);
  std::memcpy(super->tier, identity.tier.data(), identity.tier.size());
  super->tier_index = identity.tier_index;
  super->tiers = identity.tiers;
  super->feature_flags &= ~kFeatureTier;
  if (identity.tiers > 0) super->feature_flags |= kFeatureTier;
  return {};
}

}  // namespace weir::osd
