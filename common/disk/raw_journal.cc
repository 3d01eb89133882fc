// The superblocks and the metadata journal of a RawVolume.
#include <algorithm>
#include <bit>

#include "common/base/crc32c.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/prng.h"
#include "common/disk/le_bytes.h"
#include "common/disk/raw_volume.h"

namespace weir {
namespace {

constexpr uint64_t kZeroedBytesMax = 128 << 20;

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

Buffer EncodeSuper(raw::Superblock super) {
  Buffer block = Buffer::AlignedZeros(kBlockSize);
  super.crc = 0;
  std::memcpy(block.data(), &super, sizeof super);
  super.crc = Crc32c(block.data(), kBlockSize);
  std::memcpy(block.data(), &super, sizeof super);
  return block;
}

bool DecodeSuper(const Buffer& block, raw::Superblock* super) {
  std::memcpy(super, block.data(), sizeof *super);
  if (super->magic != raw::kSuperMagic || super->version != raw::kVersion) return false;
  const uint32_t stored = super->crc;
  Buffer copy = Buffer::Aligned(kBlockSize);
  std::memcpy(copy.data(), block.data(), kBlockSize);
  std::memset(copy.data() + offsetof(raw::Superblock, crc), 0, sizeof stored);
  return Crc32c(copy.data(), kBlockSize) == stored;
}

uint64_t UnitsIn(const raw::Superblock& super) {
  const uint64_t start = raw::kJournalStart + 2 * super.journal_bytes;
  return (super.region_bytes - start) / super.unit_bytes;
}

}  // namespace

Status RawVolume::Format(BlockDevice& device, Region region) {
  if (region.length < kMinBytes || region.offset % kBlockSize != 0 ||
      region.length % kBlockSize != 0) {
    return {ErrorCode::kInvalid, device.name() + ": a metadata region takes at least 4 MiB"};
  }
  RawVolume volume(device, region);
  const uint64_t random = RandomSeed();
  volume.super_ = {
      .magic = raw::kSuperMagic,
      .version = raw::kVersion,
      .fsid = random,
      .epoch = MixHash(random) >> 16,
      .region_bytes = region.length,
      .journal_bytes = std::clamp<uint64_t>(std::bit_floor(region.length / 64), 128 << 10, 4 << 20),
      .unit_bytes = std::clamp<uint64_t>(std::bit_floor(region.length / 1024), 64 << 10, 1 << 20),
      .first_ino = MixHash(random, 1) >> 16};
  if (device.is_image()) {
    const uint64_t zeroed = std::min(region.length, kZeroedBytesMax);
    const uint64_t from = LogsAreHigh(device) ? region.length - zeroed : 0;
    WEIR_RETURN_IF_ERROR(ZeroRange(device, region.offset + from, zeroed));
  }
  // Both superblocks, so that neither is of a former life.
  WEIR_RETURN_IF_ERROR(volume.AppendRecord(volume.EncodeSnapshot()));
  for (uint64_t copy = 0; copy < 2; ++copy) {
    WEIR_RETURN_IF_ERROR(
        device.Write(region.offset + copy * kBlockSize, EncodeSuper(volume.super_)));
  }
  return device.Flush();
}

Result<std::unique_ptr<RawVolume>> RawVolume::Mount(BlockDevice& device, Region region,
                                                    Growth growth) {
  std::unique_ptr<RawVolume> volume(new RawVolume(device, region, growth));
  WEIR_RETURN_IF_ERROR(volume->LoadSuperblock());
  WEIR_RETURN_IF_ERROR(volume->ReplayJournal());
  WEIR_RETURN_IF_ERROR(volume->ScanLogs());
  return volume;
}

Status RawVolume::LoadSuperblock() {
  int valid = 0;
  uint64_t wanted = 0;
  for (uint64_t copy = 0; copy < 2; ++copy) {
    Buffer block = Buffer::Aligned(kBlockSize);
    WEIR_RETURN_IF_ERROR(device_.Read(region_.offset + copy * kBlockSize, block));
    raw::Superblock super;
    if (!DecodeSuper(block, &super)) continue;
    wanted = std::max(wanted, super.region_bytes);
    if (valid == 0 || super.epoch > super_.epoch) super_ = super;
    ++valid;
  }
  if (wanted > region_.length) {
    return {ErrorCode::kCorrupt, device_.name() + ": the metadata region was of " +
                                     std::to_string(wanted) + " bytes, there are " +
                                     std::to_string(region_.length) +
                                     ": it has been cut off; put back the whole of it"};
  }
  if (valid == 0) {
    return {ErrorCode::kCorrupt, device_.name() +
                                     ": damaged, or something else: no valid superblock of the "
                                     "metadata region; put back a copy of it"};
  }
  if (valid == 1) WEIR_RETURN_IF_ERROR(CheckOtherHalf());
  units_.assign(UnitsIn(super_), false);
  free_units_ = units_.size();
  next_ino_ = super_.first_ino;
  return {};
}

// Whether a whole record of that epoch begins there.
bool RawVolume::IsRecord(const Buffer& half, uint64_t position, uint64_t epoch,
                         raw::RecordHeader* header) const {
  const uint8_t* at = half.data() + position;
  std::memcpy(header, at, sizeof *header);
  if (header->magic != raw::kRecordMagic || header->fsid != super_.fsid || header->epoch != epoch ||
      header->length > half.size() - position - sizeof *header) {
    return false;
  }
  raw::RecordHeader unsigned_header = *header;
  unsigned_header.crc = 0;
  std::string record(reinterpret_cast<const char*>(at), sizeof *header + header->length);
  std::memcpy(record.data(), &unsigned_header, sizeof unsigned_header);
  return Crc32c(record.data(), record.size()) == header->crc;
}

// A record is written when the one before is durable. So one that follows a gap says that what is
// missing was not torn off by a power loss.
Status RawVolume::CheckNoneFollows(const Buffer& half, uint64_t epoch, uint64_t seq,
                                   uint64_t from) const {
  for (uint64_t at = from; at + kBlockSize <= half.size(); at += kBlockSize) {
    raw::RecordHeader header;
    if (!IsRecord(half, at, epoch, &header) || header.seq <= seq) continue;
    return {ErrorCode::kCorrupt, device_.name() + ": the metadata journal is damaged: record " +
                                     std::to_string(header.seq) + " is there, record " +
                                     std::to_string(seq) + " is not; put back a copy"};
  }
  return {};
}

// With one superblock left: was it the one in force? A switch of halves that was cut short leaves
// no more than the first record in the other half.
Status RawVolume::CheckOtherHalf() const {
  Buffer half = Buffer::Aligned(super_.journal_bytes);
  WEIR_RETURN_IF_ERROR(device_.Read(JournalOffset(super_.active_half ^ 1), half));
  return CheckNoneFollows(half, super_.epoch + 1, 0, 0);
}

Status RawVolume::ReplayJournal() {
  Buffer half = Buffer::Aligned(super_.journal_bytes);
  WEIR_RETURN_IF_ERROR(device_.Read(JournalOffset(super_.active_half), half));
  raw::RecordHeader header;
  while (journal_used_ + sizeof header <= half.size() &&
         IsRecord(half, journal_used_, super_.epoch, &header) && header.seq == next_seq_) {
    const auto* ops = reinterpret_cast<const char*>(half.data() + journal_used_ + sizeof header);
    WEIR_RETURN_IF_ERROR(ApplyRecord({ops, header.length}));
    journal_used_ += RoundUp(sizeof header + header.length, kBlockSize);
    ++next_seq_;
  }
  WEIR_RETURN_IF_ERROR(CheckNoneFollows(half, super_.epoch, next_seq_, journal_used_));
  if (next_seq_ == 0) {
    return {ErrorCode::kCorrupt,
            device_.name() + ": the metadata journal has no valid snapshot; put back a copy"};
  }
  for (auto& [name, file] : files_) {
    next_ino_ = std::max(next_ino_, file->ino + 1);
    for (const RawExtent& extent : file->extents) {
      for (uint32_t i = 0; i < extent.count; ++i) units_[extent.unit + i] = true;
      free_units_ -= extent.count;
    }
  }
  return {};
}

Status RawVolume::ApplyRecord(std::string_view ops) {
  Status bad{ErrorCode::kCorrupt, device_.name() + ": malformed metadata journal record"};
  LeReader in(ops);
  const auto erase_ino = [this](uint64_t ino) {
    std::erase_if(files_, [ino](const auto& entry) { return entry.second->ino == ino; });
  };
  while (in.left() > 0) {
    const auto kind = static_cast<raw::OpKind>(in.Get<uint8_t>());
    auto file = std::make_shared<RawFile>();
    file->ino = in.Get<uint64_t>();
    next_ino_ = std::max(next_ino_, file->ino + 1);  // also of files deleted since
    erase_ino(file->ino);
    if (kind == raw::OpKind::kDelete) continue;
    if (kind != raw::OpKind::kSetFile) return bad;
    file->size = in.Get<uint64_t>();
    file->framed = in.Get<uint8_t>() != 0;
    file->name = in.Bytes(in.Get<uint16_t>());
    file->table = IsTable(file->name);
    for (auto n = in.Get<uint32_t>(); n > 0 && in.ok(); --n) {
      const auto unit = in.Get<uint32_t>();
      const auto count = in.Get<uint32_t>();
      if (unit > units_.size() || count > units_.size() - unit) return bad;
      file->extents.push_back({unit, count});
    }
    if (!in.ok()) return bad;
    files_[file->name] = file;
  }
  return {};
}

void RawVolume::EncodeFile(const RawFile& file, std::string& out) {
  PutLe(out, static_cast<uint8_t>(raw::OpKind::kSetFile));
  PutLe(out, file.ino);
  PutLe(out, file.framed ? uint64_t{0} : file.size);
  PutLe(out, static_cast<uint8_t>(file.framed));
  PutLe(out, static_cast<uint16_t>(file.name.size()));
  out += file.name;
  PutLe(out, static_cast<uint32_t>(file.extents.size()));
  for (const RawExtent& extent : file.extents) {
    PutLe(out, extent.unit);
    PutLe(out, extent.count);
  }
}

std::string RawVolume::EncodeSnapshot() const {
  std::string ops;
  // The highest number ever used must survive the files that used it: a deleted placeholder.
  PutLe(ops, static_cast<uint8_t>(raw::OpKind::kDelete));
  PutLe(ops, std::max(next_ino_, super_.first_ino));
  for (const auto& [name, file] : files_) EncodeFile(*file, ops);
  return ops;
}

Status RawVolume::Commit() {
  std::lock_guard journal(journal_mutex_);
  WEIR_RETURN_IF_ERROR(failed_);
  std::string ops, snapshot;
  std::vector<RawFilePtr> removed, written;
  {
    std::lock_guard lock(mutex_);
    if (dirty_.empty() && removed_.empty()) return {};
    for (const uint64_t ino : removed_) {
      PutLe(ops, static_cast<uint8_t>(raw::OpKind::kDelete));
      PutLe(ops, ino);
    }
    for (const RawFilePtr& file : dirty_) {
      EncodeFile(*file, ops);
      file->queued = false;
    }
    written.swap(dirty_);
    removed_.clear();
    removed.swap(removed_files_);
    const uint64_t size = RoundUp(sizeof(raw::RecordHeader) + ops.size(), kBlockSize);
    if (journal_used_ + size > super_.journal_bytes) snapshot = EncodeSnapshot();
  }
  failed_ = snapshot.empty() ? AppendRecord(ops) : SwitchHalf(snapshot);
  if (failed_.ok() && snapshot.empty()) failed_ = device_.Flush();
  WEIR_RETURN_IF_ERROR(failed_);
  std::lock_guard lock(mutex_);
  for (const RawFilePtr& file : written) file->dirty = file->queued;
  written.clear();
  for (RawFilePtr& file : removed) reclaimable_.push_back(std::move(file));
  removed.clear();
  ReclaimLocked();
  return {};
}

Status RawVolume::AppendRecord(const std::string& ops) {
  raw::RecordHeader header{.magic = raw::kRecordMagic,
                           .fsid = super_.fsid,
                           .epoch = super_.epoch,
                           .seq = next_seq_,
                           .length = static_cast<uint32_t>(ops.size()),
                           .crc = 0};
  const uint64_t size = RoundUp(sizeof header + ops.size(), kBlockSize);
  if (journal_used_ + size > super_.journal_bytes) {
    return {ErrorCode::kNoSpace, device_.name() + ": too many files for the metadata journal"};
  }
  Buffer record = Buffer::AlignedZeros(size);
  std::memcpy(record.data(), &header, sizeof header);
  std::memcpy(record.data() + sizeof header, ops.data(), ops.size());
  header.crc = Crc32c(record.data(), sizeof header + ops.size());
  std::memcpy(record.data(), &header, sizeof header);
  WEIR_RETURN_IF_ERROR(device_.Write(JournalOffset(super_.active_half) + journal_used_, record));
  journal_used_ += size;
  ++next_seq_;
  return {};
}

Status RawVolume::SwitchHalf(const std::string& snapshot) {
  super_.active_half ^= 1;
  ++super_.epoch;
  journal_used_ = next_seq_ = 0;
  WEIR_RETURN_IF_ERROR(AppendRecord(snapshot));
  WEIR_RETURN_IF_ERROR(device_.Flush());  // the snapshot, before a superblock points at it
  return WriteSuperblock();
}

// Failing is no error: there is room yet, and the host's disk may have some later.
void RawVolume::GrowIfHalfFull() {
  uint64_t bytes;
  {
    const std::lock_guard lock(mutex_);
    if (FreeBytesLocked() >= units_.size() * super_.unit_bytes / 2) return;
    bytes = super_.region_bytes;
  }
  const Status grown = GrowTo(RoundUp(bytes + bytes / 4, super_.unit_bytes));
  if (grown.ok() || growth_failed_.exchange(true)) return;
  WEIR_LOG_WARN("{}; it is half full", grown.message());
}

Status RawVolume::GrowTo(uint64_t region_bytes) {
  const std::lock_guard journal(journal_mutex_);
  WEIR_RETURN_IF_ERROR(failed_);
  if (region_bytes <= super_.region_bytes) return {};  // another thread was here first
  WEIR_RETURN_IF_ERROR(device_.Grow(region_.offset + region_bytes));
  std::string snapshot;
  {
    const std::lock_guard lock(mutex_);
    snapshot = EncodeSnapshot();
    super_.region_bytes = region_bytes;
  }
  failed_ = SwitchHalf(snapshot);
  WEIR_RETURN_IF_ERROR(failed_);
  const std::lock_guard lock(mutex_);
  const uint64_t units = UnitsIn(super_);
  free_units_ += units - units_.size();
  units_.resize(units, false);
  growth_failed_ = false;
  return {};
}

Status RawVolume::WriteSuperblock() {
  const uint64_t copy = super_.epoch % 2;
  WEIR_RETURN_IF_ERROR(device_.Write(region_.offset + copy * kBlockSize, EncodeSuper(super_)));
  return device_.Flush();
}

}  // namespace weir
