#include "osd/store/store_check.h"

#include <fmt/format.h>

#include "common/disk/scratch_device.h"
#include "common/kv/raw_kv_check.h"
#include "osd/store/object_check.h"
#include "osd/store/superblock.h"

namespace weir::osd {
namespace {

// Where the power failed between the two writes of a start, one copy is of the life before.
bool IsOfLifeBefore(Superblock copy, const Superblock& super) {
  if (copy.generation + 1 != super.generation || copy.life + 1 != super.life) return false;
  copy.generation = super.generation;
  copy.life = super.life;
  copy.version = super.version;
  return std::memcmp(&copy, &super, sizeof super) == 0;
}

// Both copies must be what the store goes by.
Status CheckCopies(BlockDevice& device, const Superblock& super, bool repair, Findings* findings) {
  Superblock plain = super;
  plain.crc = 0;
  for (const uint64_t offset : kSuperOffsets) {
    const Result<Superblock> copy = LoadSuperblockCopy(device, offset);
    std::string what;
    if (copy.ok()) {
      Superblock other = *copy;
      other.crc = 0;
      if (std::memcmp(&other, &plain, sizeof plain) != 0 && !IsOfLifeBefore(other, plain)) {
        what =
            fmt::format("is of generation {}, the other of {}", other.generation, super.generation);
      }
    } else if (copy.code() == ErrorCode::kCorrupt) {
      what = "is damaged";
    } else {
      return copy.status();
    }
    if (!what.empty()) findings->Add("superblock", fmt::format("the copy at {} {}", offset, what));
  }
  if (!repair || findings->CountOf("superblock") == 0) return {};
  WEIR_RETURN_IF_ERROR(StoreSuperblock(device, super));
  findings->Repaired("superblock");
  return {};
}

}  // namespace

Result<CheckReport> CheckStore(BlockDevice& device, const CheckOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const OsdIdentity identity, ReadIdentity(device));
  WEIR_ASSIGN_OR_RETURN(const Superblock super, LoadSuperblock(device));
  CheckReport report;
  report.subject = fmt::format("{}: osd.{} of cluster {}", device.name(), identity.osd_id,
                               identity.cluster_uuid);
  ScratchDevice scratch(device);
  BlockDevice& target = options.repair ? device : scratch;
  WEIR_RETURN_IF_ERROR(CheckCopies(target, super, options.repair, &report.findings));
  WEIR_ASSIGN_OR_RETURN(const auto kv, OpenForCheck(target, {super.kv_offset, super.kv_bytes},
                                                    options.deep, &report.findings));
  if (kv == nullptr) return report;
  ObjectCheck check(*kv, device, super, options, &report);
  WEIR_RETURN_IF_ERROR(check.Run());
  return report;
}

}  // namespace weir::osd
