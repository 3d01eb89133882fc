// Formatting and opening a device.
#include <algorithm>

#include "common/disk/block_device.h"
#include "osd/store/extent_store.h"
#include "osd/store/signatures.h"
#include "osd/store/superblock.h"

namespace weir::osd {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// A sixteenth for RocksDB, less on large devices: an onode costs 0.1-3 % of its data.
uint64_t KvBytes(uint64_t device_bytes) {
  const uint64_t share = device_bytes <= uint64_t{64} << 30
                             ? device_bytes / 16
                             : (uint64_t{4} << 30) + (device_bytes - (uint64_t{64} << 30)) / 64;
  return std::max<uint64_t>(share / kMiB * kMiB, 24 * kMiB);
}

}  // namespace

Status CheckUnused(BlockDevice& device) {
  const Result<Superblock> super = LoadSuperblock(device);
  if (super.ok()) {
    const OsdIdentity owner = IdentityOf(*super);
    return {ErrorCode::kExists, device.name() + ": holds osd." + std::to_string(owner.osd_id) +
                                    " of WeirFS cluster " + owner.cluster_uuid};
  }
  if (super.code() == ErrorCode::kIo) return super.status();
  if (super.code() != ErrorCode::kNotFound) {
    return {ErrorCode::kExists, super.status().message()};
  }
  WEIR_ASSIGN_OR_RETURN(const std::string found, FindForeignSignature(device));
  if (found.empty()) return {};
  return {ErrorCode::kExists, device.name() + ": holds " + found};
}

Status MakeStore(BlockDevice& device, const MkfsOptions& options) {
  const uint64_t size = std::min(device.size(), kMaxDeviceBytes);
  if (size < kMinDeviceBytes) {
    return {ErrorCode::kInvalid, device.name() + ": " + std::to_string(size) +
                                     " bytes are too few; an OSD takes at least 64 MiB"};
  }
  if (!options.force) WEIR_RETURN_IF_ERROR(CheckUnused(device));
  Superblock super{};
  std::memcpy(super.magic, kSuperMagic, sizeof kSuperMagic);
  super.version = kFormatVersion;
  super.generation = 1;
  super.device_bytes = size;
  super.kv_offset = kHeadBytes;
  super.kv_bytes = KvBytes(size);
  super.data_offset = super.kv_offset + super.kv_bytes;
  super.data_bytes = (size - kTailBytes - super.data_offset) / kBlockSize * kBlockSize;
  WEIR_RETURN_IF_ERROR(SetIdentity(options.identity, &super));
  // What was there stops being recognised before anything else is written. Then comes a superblock
  // of no cluster, by which a format that is interrupted is known as one; the true one comes last.
  WEIR_RETURN_IF_ERROR(ZeroRange(device, 0, kHeadBytes));
  WEIR_RETURN_IF_ERROR(ZeroRange(device, (size - kTailBytes) / kBlockSize * kBlockSize,
                                 kTailBytes / kBlockSize * kBlockSize));
  WEIR_RETURN_IF_ERROR(device.Flush());
  Superblock unfinished = super;
  std::memset(unfinished.cluster_uuid, 0, sizeof unfinished.cluster_uuid);
  WEIR_RETURN_IF_ERROR(StoreSuperblock(device, unfinished));
  ++super.generation;
  WEIR_RETURN_IF_ERROR(FormatRawKv(device, {super.kv_offset, super.kv_bytes}));
  return StoreSuperblock(device, super);
}

Result<OsdIdentity> ReadIdentity(BlockDevice& device) {
  const Result<Superblock> super = LoadSuperblock(device);
  if (super.ok()) return IdentityOf(*super);
  if (super.code() != ErrorCode::kNotFound) return super.status();
  WEIR_ASSIGN_OR_RETURN(const std::string found, FindForeignSignature(device));
  return {ErrorCode::kInvalid, device.name() + ": not a WeirFS disk" +
                                   (found.empty() ? "" : ", it holds " + found) +
                                   " (a new disk becomes one by weir-osd --mkfs; of one that held "
                                   "data put back a copy)"};
}

Status UpdateIdentity(BlockDevice& device, const OsdIdentity& identity) {
  WEIR_ASSIGN_OR_RETURN(Superblock super, LoadSuperblock(device));
  WEIR_RETURN_IF_ERROR(SetIdentity(identity, &super));
  ++super.generation;
  return StoreSuperblock(device, super);
}

Result<uint32_t> ReadFormatVersion(BlockDevice& device) {
  WEIR_RETURN_IF_ERROR(ReadIdentity(device).status());
  WEIR_ASSIGN_OR_RETURN(const Superblock super, LoadSuperblock(device));
  return super.version;
}

Result<std::unique_ptr<ObjectStore>> OpenStore(BlockDevice& device, const StoreOptions& options) {
  WEIR_RETURN_IF_ERROR(ReadIdentity(device).status());
  WEIR_ASSIGN_OR_RETURN(Superblock super, LoadSuperblock(device));
  super.version = kFormatVersion;  // an older program must not open what is written from now
  ++super.life;
  ++super.generation;
  WEIR_RETURN_IF_ERROR(StoreSuperblock(device, super));
  WEIR_ASSIGN_OR_RETURN(auto kv,
                        OpenRawKvStore(device, {super.kv_offset, super.kv_bytes},
                                       {.cache_bytes = options.memory_bytes / 4,
                                        .write_buffer_bytes = options.kv_write_buffer_bytes}));
  auto store = std::make_unique<ExtentStore>(device, std::move(kv),
                                             Region{super.data_offset, super.data_bytes}, options);
  WEIR_RETURN_IF_ERROR(store->Recover());
  return std::unique_ptr<ObjectStore>(std::move(store));
}

}  // namespace weir::osd
