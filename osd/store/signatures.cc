#include "osd/store/signatures.h"

#include <algorithm>
#include <string_view>

namespace weir::osd {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view what;
  int64_t offset;  // negative: from the end of the device
  std::string_view magic;
};

// The order matters where two share bytes: a FAT boot sector ends like a partition table.
constexpr Signature kSignatures[] = {
    {"an ext2/3/4 filesystem", 1024 + 56, "\x53\xef"sv},
    {"an XFS filesystem", 0, "XFSB"sv},
    {"a btrfs filesystem", 65536 + 64, "_BHRfS_M"sv},
    {"a swap area", 4096 - 10, "SWAPSPACE2"sv},
    {"a swap area", 4096 - 10, "SWAP-SPACE"sv},
    {"an LVM2 physical volume", 512, "LABELONE"sv},
    {"an LVM2 physical volume", 0, "LABELONE"sv},
    {"a LUKS volume", 0, "LUKS\xba\xbe"sv},
    {"a member of an md RAID", 4096, "\xfc\x4e\x2b\xa9"sv},
    {"a member of an md RAID", 0, "\xfc\x4e\x2b\xa9"sv},
    {"the data of a WeirFS MDS", 0, "WEIRVOL1"sv},
    {"a Ceph BlueStore", 0, "bluestore block device"sv},
    {"an NTFS filesystem", 3, "NTFS    "sv},
    {"an exFAT filesystem", 3, "EXFAT   "sv},
    {"a FAT filesystem", 54, "FAT1"sv},
    {"a FAT filesystem", 82, "FAT32"sv},
    {"an ISO 9660 filesystem", 32768 + 1, "CD001"sv},
    {"an F2FS filesystem", 1024, "\x10\x20\xf5\xf2"sv},
    {"a bcache device", 4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca"sv},
    {"a GPT partition table", 512, "EFI PART"sv},
    {"a GPT partition table", 4096, "EFI PART"sv},
    {"a GPT partition table (backup)", -512, "EFI PART"sv},
    {"an MBR partition table", 510, "\x55\xaa"sv},
};

// ZFS keeps its uberblocks from 128 KiB on, in either byte order.
bool HasZfsLabel(std::string_view head) {
  for (size_t at = 128 << 10; at + 8 <= head.size() && at < (256 << 10); at += 1024) {
    const std::string_view magic = head.substr(at, 8);
    if (magic == "\x0c\xb1\xba\0\0\0\0\0"sv || magic == "\0\0\0\0\0\xba\xb1\x0c"sv) return true;
  }
  return false;
}

// md metadata 0.90 and 1.0 lie near the end, at an offset that depends on the size.
bool HasRaidAtEnd(std::string_view tail, uint64_t size) {
  const uint64_t tail_start = size - tail.size();
  for (const uint64_t at : {(size & ~uint64_t{65535}) - 65536, ((size >> 9) - 16) / 8 * 8 * 512}) {
    if (at >= tail_start && tail.substr(at - tail_start, 4) == "\xfc\x4e\x2b\xa9"sv) return true;
  }
  return false;
}

}  // namespace

Result<std::string> FindForeignSignature(BlockDevice& device) {
  const uint64_t probe = std::min<uint64_t>(device.size() / 2 / kBlockSize * kBlockSize, 256 << 10);
  if (probe == 0) return std::string();
  Buffer head_bytes = Buffer::Aligned(probe), tail_bytes = Buffer::Aligned(probe);
  WEIR_RETURN_IF_ERROR(device.Read(0, head_bytes));
  WEIR_RETURN_IF_ERROR(device.Read(device.size() - probe, tail_bytes));
  const std::string_view head = head_bytes.view(), tail = tail_bytes.view();
  if (HasZfsLabel(head)) return std::string("a ZFS pool member");
  for (const Signature& signature : kSignatures) {
    const bool from_end = signature.offset < 0;
    const std::string_view where = from_end ? tail : head;
    const uint64_t at = from_end ? where.size() - static_cast<uint64_t>(-signature.offset)
                                 : static_cast<uint64_t>(signature.offset);
    if (at >= where.size()) continue;
    if (where.substr(at, signature.magic.size()) == signature.magic) {
      return std::string(signature.what);
    }
  }
  if (HasRaidAtEnd(tail, device.size())) return std::string("a member of an md RAID");
  return std::string();
}

}  // namespace weir::osd
