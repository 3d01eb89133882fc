#include "osd/format/onode_format.h"

#include "common/disk/le_bytes.h"

namespace weir::osd {
namespace {

constexpr uint8_t kRecordVersion = 1;
constexpr uint8_t kHeadOfFormat4 = 2;  // versions of two parts, tombstones, the slot
constexpr uint8_t kTombstone = 1;      // bits of its state
constexpr uint8_t kHasSlot = 2;
constexpr uint8_t kShardThatKeeps = 2;  // with a map of the blocks for which space is kept

std::string ObjectKey(char kind, ObjectId id) {
  std::string key(1, kind);
  PutBe64(key, id.inode.value);
  PutBe64(key, id.index);
  return key;
}

void PutVersion(std::string& out, replication::Version version) {
  PutLe(out, version.chain);
  PutLe(out, version.sequence);
}

replication::Version GetVersion(LeReader& in) {
  replication::Version version;
  version.chain = in.Get<uint64_t>();
  version.sequence = in.Get<uint64_t>();
  return version;
}

void PutSlot(std::string& key, SlotId slot) {
  PutBe32(key, slot.pool);
  PutBe32(key, slot.slot);
}

SlotId GetSlot(LeReader& in) {
  SlotId slot;
  slot.pool = in.GetBe32();
  slot.slot = in.GetBe32();
  return slot;
}

Status Malformed(std::string_view what) {
  return {ErrorCode::kCorrupt, "metadata store: malformed " + std::string(what) + " record"};
}

}  // namespace

std::string HeadKey(ObjectId id) {
  return ObjectKey('O', id);
}

std::string HeadKeysEnd(InodeId inode) {
  return HeadKey({inode, UINT64_MAX}) + '\0';
}

std::string ShardKey(ObjectId id, uint32_t shard) {
  std::string key = ObjectKey('S', id);
  key.push_back(static_cast<char>(shard));
  return key;
}

std::string OverlayKey(ObjectId id, uint32_t block) {
  std::string key = ObjectKey('D', id);
  key.push_back(static_cast<char>(block >> 8));
  key.push_back(static_cast<char>(block));
  return key;
}

std::string IndexKey(SlotId slot, ObjectId id) {
  std::string key(1, 'N');
  PutSlot(key, slot);
  PutBe64(key, id.inode.value);
  PutBe64(key, id.index);
  return key;
}

std::string OpIdsKey(ObjectId id, uint64_t session) {
  std::string key = ObjectKey('I', id);
  PutBe64(key, session);
  return key;
}

std::string SessionFloorKey(SlotId slot, uint64_t session) {
  std::string key(1, 'F');
  PutSlot(key, slot);
  PutBe64(key, session);
  return key;
}

ParsedKey ParseKey(std::string_view key) {
  LeReader in(key);
  ParsedKey parsed;
  parsed.kind = static_cast<char>(in.Get<uint8_t>());
  if (parsed.kind == 'N' || parsed.kind == 'F') parsed.slot = GetSlot(in);
  if (parsed.kind != 'F') {
    parsed.id.inode = InodeId(in.GetBe64());
    parsed.id.index = in.GetBe64();
  }
  if (parsed.kind == 'I' || parsed.kind == 'F') parsed.session = in.GetBe64();
  if (parsed.kind == 'S') parsed.number = in.Get<uint8_t>();
  if (parsed.kind == 'D') {
    const auto high = in.Get<uint8_t>();
    parsed.number = uint32_t{high} << 8 | in.Get<uint8_t>();
  }
  const uint32_t end = parsed.kind == 'S' ? kShardsPerObject : kBlocksPerObject;
  const bool known = std::string_view("OSDNIF").find(parsed.kind) != std::string_view::npos;
  if (!known || !in.ok() || in.left() != 0 || parsed.number >= end) parsed.kind = 0;
  return parsed;
}

std::string EncodeHead(const OnodeHead& head) {
  std::string out;
  const auto state = static_cast<uint8_t>((head.tombstone ? kTombstone : 0) |
                                          (head.slot.has_value() ? kHasSlot : 0));
  PutLe(out, kHeadOfFormat4);
  PutLe(out, head.size);
  PutLe(out, state);
  PutVersion(out, head.version);
  PutVersion(out, head.data_version);
  PutLe(out, head.shards);
  if (head.slot.has_value()) {
    PutLe(out, head.slot->pool);
    PutLe(out, head.slot->slot);
  }
  return out;
}

Result<OnodeHead> DecodeHead(std::string_view value) {
  LeReader in(value);
  const auto version = in.Get<uint8_t>();
  OnodeHead head;
  head.size = in.Get<uint64_t>();
  uint8_t state = 0;
  if (version == kHeadOfFormat4) {
    state = in.Get<uint8_t>();
    head.version = GetVersion(in);
    head.data_version = GetVersion(in);
  } else {
    head.version = head.data_version = {0, in.Get<uint64_t>()};
  }
  head.shards = in.Get<uint16_t>();
  head.tombstone = (state & kTombstone) != 0;
  if ((state & kHasSlot) != 0) {
    head.slot.emplace();
    head.slot->pool = in.Get<uint32_t>();
    head.slot->slot = in.Get<uint32_t>();
  }
  const bool known = version == kRecordVersion || version == kHeadOfFormat4;
  const bool whole = in.ok() && (version == kRecordVersion || in.left() == 0);
  if (!known || !whole || (state & ~(kTombstone | kHasSlot)) != 0 || head.size > kMaxObjectSize) {
    return Malformed("onode");
  }
  return head;
}

bool IsTombstone(std::string_view value) {
  const Result<OnodeHead> head = DecodeHead(value);
  return head.ok() && head->tombstone;
}

std::string EncodeVersion(replication::Version version) {
  std::string out;
  PutVersion(out, version);
  return out;
}

Result<replication::Version> DecodeVersion(std::string_view value) {
  LeReader in(value);
  const replication::Version version = GetVersion(in);
  if (!in.ok() || in.left() != 0) return Malformed("index");
  return version;
}

std::string EncodeOpIds(const OpIdsValue& value) {
  std::string out;
  PutLe(out, kRecordVersion);
  PutLe(out, value.object_floor);
  const auto put = [&out](const OpIdRecord& id, uint64_t result) {
    PutLe(out, id.number);
    PutVersion(out, id.version);
    PutLe(out, id.status);
    PutLe(out, result);
  };
  for (const OpIdRecord& id : value.ids) {
    put(id, id.result);
    for (const ByteRange& range : id.kept) {
      put(id, (range.offset / kBlockSize) << 32 | range.length / kBlockSize);
    }
  }
  return out;
}

Result<OpIdsValue> DecodeOpIds(std::string_view value) {
  LeReader in(value);
  const auto version = in.Get<uint8_t>();
  OpIdsValue ids;
  ids.object_floor = in.Get<uint64_t>();
  while (in.ok() && in.left() > 0) {
    OpIdRecord id;
    id.number = in.Get<uint64_t>();
    id.version = GetVersion(in);
    id.status = in.Get<uint16_t>();
    id.result = in.Get<uint64_t>();
    if (ids.ids.empty() || ids.ids.back().number != id.number) {
      ids.ids.push_back(std::move(id));
    } else {
      ids.ids.back().kept.push_back(
          {(id.result >> 32) * kBlockSize, (id.result & UINT32_MAX) * kBlockSize});
    }
  }
  if (!in.ok() || version != kRecordVersion) return Malformed("op id");
  return ids;
}

std::string EncodeFloor(uint64_t floor) {
  std::string out;
  PutLe(out, floor);
  return out;
}

Result<uint64_t> DecodeFloor(std::string_view value) {
  LeReader in(value);
  const auto floor = in.Get<uint64_t>();
  if (!in.ok() || in.left() != 0) return Malformed("floor");
  return floor;
}

std::string EncodeShard(std::span<const BlockRef> refs, uint64_t kept) {
  std::string runs, crcs;
  uint8_t count = 0;
  for (size_t i = 0; i < refs.size();) {
    if (refs[i].place == 0) {
      ++i;
      continue;
    }
    size_t length = 1;
    while (i + length < refs.size() && refs[i + length].place == refs[i].place + length) ++length;
    PutLe(runs, static_cast<uint8_t>(i));
    PutLe(runs, static_cast<uint8_t>(length));
    PutLe(runs, refs[i].place);
    for (size_t j = 0; j < length; ++j) PutLe(crcs, refs[i + j].crc);
    ++count;
    i += length;
  }
  std::string out;
  PutLe(out, kept == 0 ? kRecordVersion : kShardThatKeeps);
  PutLe(out, count);
  out += runs + crcs;
  if (kept != 0) PutLe(out, kept);
  return out;
}

Status DecodeShard(std::string_view value, std::span<BlockRef> refs, uint64_t* kept) {
  LeReader in(value);
  const auto version = in.Get<uint8_t>();
  const auto count = in.Get<uint8_t>();
  const bool known = version == kRecordVersion || version == kShardThatKeeps;
  if (!known || count > kBlocksPerShard) return Malformed("extent map");
  LeReader crcs = in;
  crcs.Bytes(size_t{count} * 6);
  for (uint8_t run = 0; run < count; ++run) {
    const auto start = in.Get<uint8_t>();
    const auto length = in.Get<uint8_t>();
    const auto place = in.Get<uint32_t>();
    if (start + length > refs.size()) return Malformed("extent map");
    for (uint32_t i = 0; i < length; ++i) refs[start + i] = {place + i, crcs.Get<uint32_t>()};
  }
  const uint64_t bits = version == kShardThatKeeps ? crcs.Get<uint64_t>() : 0;
  if (kept != nullptr) *kept = bits;
  return crcs.ok() && crcs.left() == 0 ? Status() : Malformed("extent map");
}

std::string EncodeOverlay(uint64_t version, std::string_view block) {
  std::string out;
  out.reserve(1 + 8 + block.size());
  PutLe(out, kRecordVersion);
  PutLe(out, version);
  out += block;
  return out;
}

Result<OverlayValue> DecodeOverlay(std::string_view value) {
  LeReader in(value);
  const auto record_version = in.Get<uint8_t>();
  const auto version = in.Get<uint64_t>();
  const std::string_view block = in.Bytes(kBlockSize);
  if (!in.ok() || in.left() != 0 || record_version != kRecordVersion) return Malformed("overlay");
  return OverlayValue{version, block};
}

}  // namespace weir::osd
