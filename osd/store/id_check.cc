#include "osd/store/id_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "osd/format/onode_format.h"

namespace weir::osd {
namespace {

std::string ObjectName(ObjectId id) {
  return fmt::format("object {}.{}", id.inode.value, id.index);
}

class IdCheck {
 public:
  IdCheck(KvStore& kv, Findings* findings, WriteBatch* repairs)
      : kv_(kv), findings_(*findings), repairs_(*repairs) {}
  Status Run() {
    WEIR_RETURN_IF_ERROR(Visit('O', &IdCheck::CheckHead));
    WEIR_RETURN_IF_ERROR(Visit('N', &IdCheck::CheckEntry));
    WEIR_RETURN_IF_ERROR(Visit('I', &IdCheck::CheckOpIds));
    return Visit('F', &IdCheck::CheckFloor);
  }

 private:
  using Check = Status (IdCheck::*)(const ParsedKey& key, std::string_view value);
  Status Visit(char kind, Check check);
  Status CheckHead(const ParsedKey& key, std::string_view value);
  Status CheckEntry(const ParsedKey& key, std::string_view value);
  Status CheckOpIds(const ParsedKey& key, std::string_view value);
  Status CheckFloor(const ParsedKey& key, std::string_view value);
  Result<bool> HasOpIds(ObjectId id);

  KvStore& kv_;
  Findings& findings_;
  WriteBatch& repairs_;
};

Status IdCheck::Visit(char kind, Check check) {
  const auto it = kv_.NewIterator();
  for (it->Seek(std::string(1, kind)); it->Valid() && it->key()[0] == kind; it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    if (key.kind == kind) {
      WEIR_RETURN_IF_ERROR((this->*check)(key, it->value()));
    } else if (kind != 'O') {  // of those the walk over the objects tells
      findings_.Add("record", fmt::format("a key of kind {} that does not parse", kind));
    }
  }
  return it->status();
}

Result<bool> IdCheck::HasOpIds(ObjectId id) {
  const auto it = kv_.NewIterator();
  it->Seek(OpIdsKey(id, 0));
  WEIR_RETURN_IF_ERROR(it->status());
  if (!it->Valid()) return false;
  const ParsedKey key = ParseKey(it->key());
  return key.kind == 'I' && key.id == id;
}

Status IdCheck::CheckHead(const ParsedKey& key, std::string_view value) {
  const Result<OnodeHead> head = DecodeHead(value);
  if (!head.ok()) return {};  // told by the walk over the objects
  const std::string name = ObjectName(key.id);
  if (head->tombstone) {
    if (head->size > 0 || head->shards != 0) {
      findings_.Add("record", name + ": it is deleted and has bytes");
    }
    WEIR_ASSIGN_OR_RETURN(const bool needed, HasOpIds(key.id));
    if (!needed) {
      findings_.Add("leak", name + ": nobody may ask any more what became of it");
      repairs_.Delete(HeadKey(key.id));
      if (head->slot.has_value()) repairs_.Delete(IndexKey(*head->slot, key.id));
      return {};
    }
  }
  if (!head->slot.has_value()) return {};
  const std::string index_key = IndexKey(*head->slot, key.id);
  const Result<std::string> entry = kv_.Get(index_key);
  if (!entry.ok() && entry.code() != ErrorCode::kNotFound) return entry.status();
  const Result<replication::Version> version = entry.ok() ? DecodeVersion(*entry) : entry.status();
  if (version.ok() && *version == head->version) return {};
  findings_.Add("index",
                fmt::format("{}: slot {} of pool {} {}", name, head->slot->slot, head->slot->pool,
                            entry.ok() ? "has another version of it" : "does not list it"));
  repairs_.Put(index_key, EncodeVersion(head->version));
  return {};
}

// That a version differs is told with the head.
Status IdCheck::CheckEntry(const ParsedKey& key, std::string_view) {
  const Result<std::string> value = kv_.Get(HeadKey(key.id));
  if (!value.ok() && value.code() != ErrorCode::kNotFound) return value.status();
  const Result<OnodeHead> head = value.ok() ? DecodeHead(*value) : value.status();
  if (value.ok() && !head.ok()) return {};  // nothing is certain
  if (head.ok() && head->slot == key.slot) return {};
  findings_.Add("index", fmt::format("slot {} of pool {} lists {}, which is not there",
                                     key.slot.slot, key.slot.pool, ObjectName(key.id)));
  repairs_.Delete(IndexKey(key.slot, key.id));
  return {};
}

Status IdCheck::CheckOpIds(const ParsedKey& key, std::string_view value) {
  const std::string what =
      fmt::format("{}: the op ids of session {:016x}", ObjectName(key.id), key.session);
  const Result<OpIdsValue> ids = DecodeOpIds(value);
  const bool sorted = ids.ok() && std::is_sorted(ids->ids.begin(), ids->ids.end(),
                                                 [](const OpIdRecord& a, const OpIdRecord& b) {
                                                   return a.number < b.number;
                                                 });
  if (!sorted) findings_.Add("record", what + " do not decode");
  const Result<std::string> head = kv_.Get(HeadKey(key.id));
  if (head.ok()) return {};
  if (head.code() != ErrorCode::kNotFound) return head.status();
  findings_.Add("leak", what + " belong to no object and no tombstone");
  repairs_.Delete(OpIdsKey(key.id, key.session));
  return {};
}

Status IdCheck::CheckFloor(const ParsedKey& key, std::string_view value) {
  if (DecodeFloor(value).ok()) return {};
  findings_.Add("record", fmt::format("the floor of session {:016x} in slot {} of pool {} does not "
                                      "decode",
                                      key.session, key.slot.slot, key.slot.pool));
  return {};
}

}  // namespace

Status CheckIds(KvStore& kv, Findings* findings, WriteBatch* repairs) {
  return IdCheck(kv, findings, repairs).Run();
}

}  // namespace weir::osd
