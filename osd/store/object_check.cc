#include "osd/store/object_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "common/base/crc32c.h"
#include "common/disk/block_device.h"
#include "common/disk/le_bytes.h"
#include "osd/store/id_check.h"

namespace weir::osd {
namespace {

constexpr uint32_t kSharingVersion = 2;  // of the disk format: from here on copies share blocks

std::string NameOf(ObjectId id) {
  return fmt::format("object {}.{}", id.inode.value, id.index);
}

uint32_t BlocksUpTo(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kBlockSize - 1) / kBlockSize);
}

bool AllZero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

}  // namespace

ObjectCheck::ObjectCheck(KvStore& kv, BlockDevice& device, const Superblock& super,
                         const CheckOptions& options, CheckReport* report)
    : kv_(kv),
      device_(device),
      first_(static_cast<uint32_t>(super.data_offset / kBlockSize)),
      count_(static_cast<uint32_t>(super.data_bytes / kBlockSize)),
      may_share_(super.version >= kSharingVersion),
      options_(options),
      report_(*report),
      taken_(count_),
      named_again_(count_) {}

Status ObjectCheck::Run() {
  WEIR_RETURN_IF_ERROR(ReadMark());
  WEIR_RETURN_IF_ERROR(CountStrangers());
  Status walked = Walk();
  if (walked.ok()) walked = CheckIds(kv_, &findings(), options_.repair ? &repairs_ : &unwanted_);
  if (walked.code() == ErrorCode::kCorrupt) {
    findings().Add("tables", walked.message());
  } else {
    WEIR_RETURN_IF_ERROR(walked);
  }
  CountWaiting();
  CheckKept();
  WEIR_RETURN_IF_ERROR(CheckShared());
  WEIR_RETURN_IF_ERROR(NameOwners());
  if (options_.repair) WEIR_RETURN_IF_ERROR(Repair());
  report_.facts = {{"capacity_bytes", uint64_t{count_} * kBlockSize},
                   {"used_bytes", used_blocks_ * kBlockSize},
                   {"leaked_bytes", leaked_blocks_ * kBlockSize},
                   {"kept_bytes", kept_blocks_ * kBlockSize},
                   {"objects", objects_},
                   {"waiting_blocks", waiting_},
                   {"verified_bytes", verified_}};
  return {};
}

Status ObjectCheck::ReadMark() {
  const Result<std::string> mark = kv_.Get(kVersionMarkKey);
  if (mark.code() == ErrorCode::kNotFound) return {};  // never opened
  WEIR_RETURN_IF_ERROR(mark.status());
  if (mark->size() == sizeof mark_) {
    mark_ = LeReader(*mark).Get<uint64_t>();
  } else {
    findings().Add("record", "the mark of the highest version does not decode");
  }
  return {};
}

// Keys outside of the tables.
Status ObjectCheck::CountStrangers() {
  const std::string known = "DFINOS";
  auto it = kv_.NewIterator();
  uint64_t strangers = 0;
  for (it->Seek(""); it->Valid();) {
    const char kind = it->key().empty() ? '\0' : it->key()[0];
    if (known.find(kind) != std::string::npos) {
      it->Seek(std::string(1, static_cast<char>(kind + 1)));
      continue;
    }
    if (it->key() != kVersionMarkKey) ++strangers;
    it->Next();
  }
  if (strangers > 0)
    findings().Add("record", fmt::format("{} records of no known kind", strangers));
  return it->status();
}

Status ObjectCheck::OpenCursor(char kind, Cursor* cursor) {
  *cursor = {kv_.NewIterator(), kind, {}};
  cursor->it->Seek(std::string(1, kind));
  return Settle(cursor);
}

Status ObjectCheck::Settle(Cursor* cursor) {
  for (; cursor->it->Valid() && cursor->it->key()[0] == cursor->kind; cursor->it->Next()) {
    cursor->key = ParseKey(cursor->it->key());
    if (cursor->valid()) return {};
    findings().Add("record", fmt::format("a key of kind {} that does not parse", cursor->kind));
  }
  cursor->key = {};
  return cursor->it->status();
}

Status ObjectCheck::Step(Cursor* cursor) {
  cursor->it->Next();
  return Settle(cursor);
}

// The tables side by side, one object after the other.
Status ObjectCheck::Walk() {
  WEIR_RETURN_IF_ERROR(OpenCursor('O', &heads_));
  WEIR_RETURN_IF_ERROR(OpenCursor('S', &shards_));
  WEIR_RETURN_IF_ERROR(OpenCursor('D', &overlays_));
  for (;;) {
    const Cursor* next = nullptr;
    for (const Cursor* cursor : {&heads_, &shards_, &overlays_}) {
      if (cursor->valid() && (next == nullptr || cursor->key.id < next->key.id)) next = cursor;
    }
    if (next == nullptr) return {};
    Records records;
    WEIR_RETURN_IF_ERROR(Gather(next->key.id, &records));
    CheckHead(records);
    CheckReach(records);
    if (!records.has_head) continue;
    CheckEnd(records);
    if (options_.deep) WEIR_RETURN_IF_ERROR(CheckBlocks(records));
  }
}

Status ObjectCheck::Gather(ObjectId id, Records* records) {
  records->id = id;
  if (heads_.valid() && heads_.key.id == id) {
    records->has_head = true;
    const Result<OnodeHead> head = DecodeHead(heads_.it->value());
    records->head_ok = head.ok();
    if (head.ok()) {
      records->head = *head;
    } else {
      findings().Add("record", NameOf(id) + ": its head does not decode");
    }
    if (!records->head.tombstone) ++objects_;
    WEIR_RETURN_IF_ERROR(Step(&heads_));
  }
  for (; shards_.valid() && shards_.key.id == id;) {
    TakeShard(shards_.it->value(), shards_.key.number, records);
    WEIR_RETURN_IF_ERROR(Step(&shards_));
  }
  for (; overlays_.valid() && overlays_.key.id == id;) {
    const uint32_t block = overlays_.key.number;
    const Result<OverlayValue> value = DecodeOverlay(overlays_.it->value());
    if (value.ok()) {
      records->overlays[block] = {value->version, std::string(value->block)};
    } else {
      findings().Add("record", fmt::format("{}: block {} waits for its place and does not decode",
                                           NameOf(id), block));
    }
    ++waiting_;
    const BlockRef below = block < records->blocks.size() ? records->blocks[block] : BlockRef{};
    const auto kept = records->kept.find(block / kBlocksPerShard);
    const bool is_kept =
        kept != records->kept.end() && (kept->second >> block % kBlocksPerShard & 1) != 0;
    if (!is_kept) overlaid_.push_back(below.place);
    WEIR_RETURN_IF_ERROR(Step(&overlays_));
  }
  return {};
}

void ObjectCheck::TakeShard(std::string_view value, uint32_t shard, Records* records) {
  const size_t base = size_t{shard} * kBlocksPerShard;
  records->shards |= static_cast<uint16_t>(1u << shard);
  if (records->blocks.size() < base + kBlocksPerShard) {
    records->blocks.resize(base + kBlocksPerShard);
  }
  const std::span<BlockRef> refs(&records->blocks[base], kBlocksPerShard);
  uint64_t kept = 0;
  if (!DecodeShard(value, refs, &kept).ok()) {
    std::fill(refs.begin(), refs.end(), BlockRef{});
    records->bad_shards |= static_cast<uint16_t>(1u << shard);
    findings().Add("record",
                   fmt::format("{}: extent map {} does not decode", NameOf(records->id), shard));
    return;
  }
  if (kept != 0) records->kept[shard] = kept;
  kept_blocks_ += static_cast<uint64_t>(std::popcount(kept));
  for (uint32_t i = 0; i < kBlocksPerShard; ++i) {
    if (refs[i].place == 0) continue;
    TakeBlock(records->id, static_cast<uint32_t>(base) + i, refs[i].place);
  }
}

void ObjectCheck::TakeBlock(ObjectId id, uint32_t block, uint32_t place) {
  if (place < first_ || place - first_ >= count_) {
    findings().Add("outside", fmt::format("{}: block {} lies at device block {}, outside of the "
                                          "data region",
                                          NameOf(id), block, place));
    return;
  }
  if (taken_[place - first_]) {
    named_again_[place - first_] = true;
    any_named_again_ = true;
    if (!may_share_ && claimed_.size() < Findings::kListedMax) claimed_.try_emplace(place);
    return;
  }
  taken_[place - first_] = true;
  ++used_blocks_;
}

void ObjectCheck::CheckHead(const Records& records) {
  if (!records.head_ok) return;
  const std::string name = NameOf(records.id);
  const uint64_t sequence = records.head.version.sequence;
  if (sequence >= mark_) {
    findings().Add("record", fmt::format("{}: version {} was never given (next is at most {})",
                                         name, sequence, mark_));
  }
  for (const auto& [block, overlay] : records.overlays) {
    if (overlay.version <= sequence) continue;
    findings().Add("record", fmt::format("{}: block {} is newer than the object", name, block));
  }
  const auto missing = static_cast<uint16_t>(records.head.shards & ~records.shards);
  for (uint32_t shard = 0; shard < kShardsPerObject; ++shard) {
    if ((missing >> shard & 1) == 0) continue;
    findings().Add("lost", fmt::format("{}: extent map {} is missing", name, shard));
  }
}

// Records without a head, or that the head does not know.
void ObjectCheck::CheckReach(const Records& records) {
  if (records.has_head && !records.head_ok) return;  // told already; nothing here is certain
  const std::string name = NameOf(records.id);
  for (uint32_t shard = 0; shard < kShardsPerObject; ++shard) {
    const bool stored = (records.shards >> shard & 1) != 0;
    if (!stored || (records.head.shards >> shard & 1) != 0) continue;
    const auto begin = records.blocks.begin() + size_t{shard} * kBlocksPerShard;
    auto blocks = static_cast<uint64_t>(std::count_if(
        begin, begin + kBlocksPerShard, [](const BlockRef& ref) { return ref.place != 0; }));
    if (const auto kept = records.kept.find(shard); kept != records.kept.end()) {
      blocks += static_cast<uint64_t>(std::popcount(kept->second));
    }
    Unreachable(ShardKey(records.id, shard), fmt::format("{}: extent map {}", name, shard), blocks);
  }
  if (records.has_head) return;
  for (const auto& [block, overlay] : records.overlays) {
    Unreachable(OverlayKey(records.id, block), fmt::format("{}: waiting block {}", name, block), 1);
  }
}

void ObjectCheck::Unreachable(std::string key, std::string what, uint64_t blocks) {
  leaked_blocks_ += blocks;
  findings().Add("leak", fmt::format("{} belongs to no object ({} blocks)", what, blocks));
  if (options_.repair) repairs_.Delete(key);
}

void ObjectCheck::CheckEnd(const Records& records) {
  if (!records.head_ok) return;
  const uint32_t end = BlocksUpTo(records.head.size);
  for (uint32_t block = end; block < records.blocks.size(); ++block) {
    if (records.blocks[block].place == 0) continue;
    findings().Add("behind-end", fmt::format("{}: block {} is behind its end at {} bytes",
                                             NameOf(records.id), block, records.head.size));
  }
  for (auto it = records.overlays.lower_bound(end); it != records.overlays.end(); ++it) {
    findings().Add("behind-end", fmt::format("{}: block {} waits behind its end at {} bytes",
                                             NameOf(records.id), it->first, records.head.size));
  }
}

// Blocks that lie together are read together. What an overlay hides may be torn and is not read.
Status ObjectCheck::CheckBlocks(const Records& records) {
  constexpr uint32_t kRunMax = 256;
  const auto readable = [&](uint32_t block) {
    const uint32_t place = records.blocks[block].place;
    return place >= first_ && place - first_ < count_ && !records.overlays.contains(block);
  };
  for (uint32_t block = 0; block < records.blocks.size();) {
    uint32_t run = 0;
    while (run < kRunMax && block + run < records.blocks.size() && readable(block + run) &&
           records.blocks[block + run].place == records.blocks[block].place + run) {
      ++run;
    }
    if (run > 0) WEIR_RETURN_IF_ERROR(CheckRun(records, block, run));
    block += std::max<uint32_t>(run, 1);
  }
  for (const auto& [block, overlay] : records.overlays) CheckTail(records, block, overlay.bytes);
  return {};
}

Status ObjectCheck::CheckRun(const Records& records, uint32_t first, uint32_t count) {
  const uint64_t offset = uint64_t{records.blocks[first].place} * kBlockSize;
  const Buffer bytes = Buffer::Aligned(size_t{count} * kBlockSize);
  WEIR_RETURN_IF_ERROR(device_.Read(offset, bytes));
  verified_ += bytes.size();
  for (uint32_t i = 0; i < count; ++i) {
    const Buffer block = bytes.Slice(size_t{i} * kBlockSize, kBlockSize);
    if (Crc32c(block.data(), kBlockSize) == records.blocks[first + i].crc) {
      CheckTail(records, first + i, block.view());
      continue;
    }
    findings().Add("checksum", fmt::format("{}: block {} at device offset {}", NameOf(records.id),
                                           first + i, offset + uint64_t{i} * kBlockSize));
  }
  return {};
}

void ObjectCheck::CheckTail(const Records& records, uint32_t block, std::string_view bytes) {
  if (!records.head_ok || records.head.size / kBlockSize != block) return;
  if (AllZero(bytes.substr(records.head.size % kBlockSize))) return;
  findings().Add("behind-end", fmt::format("{}: bytes behind its end at {} are not zero",
                                           NameOf(records.id), records.head.size));
}

// Every block that lies in the data region, in the order of the records.
template <typename Visit>
Status ObjectCheck::ForEachBlock(Visit visit) {
  std::vector<BlockRef> refs(kBlocksPerShard);
  const auto it = kv_.NewIterator();
  for (it->Seek("S"); it->Valid() && it->key()[0] == 'S'; it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    std::fill(refs.begin(), refs.end(), BlockRef{});
    if (key.kind == 0 || !DecodeShard(it->value(), refs, nullptr).ok()) continue;
    for (uint32_t i = 0; i < kBlocksPerShard; ++i) {
      if (refs[i].place < first_ || refs[i].place - first_ >= count_) continue;
      visit(key.id, key.number * kBlocksPerShard + i, refs[i]);
    }
  }
  return it->status();
}

// A place is kept for a waiting block that has none, or that must not overwrite what others share.
void ObjectCheck::CountWaiting() {
  for (const uint32_t place : overlaid_) {
    const bool inside = place >= first_ && place - first_ < count_;
    if (!inside || named_again_[place - first_]) ++used_blocks_;
  }
}

void ObjectCheck::CheckKept() {
  used_blocks_ += kept_blocks_;
  if (used_blocks_ <= count_) return;
  findings().Add("space", fmt::format("space is kept for {} blocks more than there are",
                                      used_blocks_ - count_));
}

// Copies agree on the checksum of a block that they share; others have got it by mistake.
Status ObjectCheck::CheckShared() {
  if (!may_share_ || !any_named_again_) return {};
  constexpr size_t kMostChecked = size_t{1} << 24;  // so that memory is bounded
  std::unordered_map<uint32_t, uint32_t> crcs;
  return ForEachBlock([&](ObjectId, uint32_t, const BlockRef& ref) {
    if (!named_again_[ref.place - first_] || crcs.size() >= kMostChecked) return;
    const auto [known, first] = crcs.try_emplace(ref.place, ref.crc);
    if (!first && known->second != ref.crc && claimed_.size() < Findings::kListedMax) {
      claimed_.try_emplace(ref.place);
    }
  });
}

Status ObjectCheck::NameOwners() {
  if (claimed_.empty()) return {};
  WEIR_RETURN_IF_ERROR(ForEachBlock([&](ObjectId id, uint32_t block, const BlockRef& ref) {
    const auto found = claimed_.find(ref.place);
    if (found == claimed_.end()) return;
    found->second.push_back(fmt::format("{} block {}", NameOf(id), block));
  }));
  for (const auto& [place, owners] : claimed_) {
    findings().Add("double-use",
                   fmt::format("device block {} is in {}", place, fmt::join(owners, " and in ")));
  }
  return {};
}

Status ObjectCheck::Repair() {
  if (repairs_.empty()) return {};
  WEIR_RETURN_IF_ERROR(kv_.Apply(repairs_, Durability::kDurable));
  for (const char* kind : {"leak", "index"}) {
    if (findings().CountOf(kind) > 0) findings().Repaired(kind);
  }
  return {};
}

}  // namespace weir::osd
