// The superblock of an OSD's device; see DISK_FORMAT.md. Two copies, written one after the other
// with a flush between; the valid one with the higher generation wins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/buffer.h"

namespace weir::osd {

inline constexpr char kSuperMagic[8] = {'W', 'E', 'I', 'R', 'O', 'S', 'D', '\n'};
inline constexpr uint32_t kFormatVersion = 4;
inline constexpr uint32_t kOldestFormatVersion = 1;  // that is read, and turned into the newest
inline constexpr uint64_t kFeatureTier = 1;          // one of the disks of an OSD that has several
inline constexpr uint64_t kSuperOffsets[2] = {0, 512 << 10};
inline constexpr uint64_t kHeadBytes = 1 << 20;  // superblocks and room for later formats
inline constexpr uint64_t kTailBytes = 1 << 20;  // unused: where others keep signatures
inline constexpr uint64_t kMinDeviceBytes = 64 << 20;
// Places of blocks are 32-bit numbers; what lies beyond on a larger device is not used.
inline constexpr uint64_t kMaxDeviceBytes = (uint64_t{1} << 32) * kBlockSize;

struct Superblock {
  char magic[8];
  uint32_t crc;  // of the whole 4 KiB block with this field zero
  uint32_t version;
  uint64_t generation;
  uint64_t feature_flags;  // kFeature...; an unknown one is a refusal
  uint64_t device_bytes;
  uint64_t kv_offset, kv_bytes;      // region of RocksDB
  uint64_t data_offset, data_bytes;  // region of object data
  uint64_t token_rate;               // bytes per second; 0: not measured
  uint32_t osd_id;
  uint32_t reserved;
  char cluster_uuid[48];  // padded with zeros
  char osd_uuid[48];
  // With kFeatureTier, else zeros.
  char tier[8];         // name, padded with zeros
  uint32_t tier_index;  // 0: where files go that name none
  uint32_t tiers;       // that the OSD has
  uint64_t life;        // how often a store was opened here; 0 before format 4
};
static_assert(sizeof(Superblock) == 208 && offsetof(Superblock, life) == 200 &&
              offsetof(Superblock, generation) == 16);
static_assert(offsetof(Superblock, cluster_uuid) == 88);

}  // namespace weir::osd
