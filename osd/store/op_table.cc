#include "osd/store/op_table.h"

#include <algorithm>

namespace weir::osd {
namespace {

// So many ids at most go with one batch when a floor rises; the next one takes more.
constexpr size_t kForgottenAtOnce = 64;

auto Position(std::vector<OpIdRecord>& ids, uint64_t number) {
  return std::lower_bound(ids.begin(), ids.end(), number,
                          [](const OpIdRecord& id, uint64_t wanted) { return id.number < wanted; });
}

}  // namespace

Status OpTable::Load(KvStore& kv, WriteBatch* batch) {
  const auto lock = Lock();
  WEIR_RETURN_IF_ERROR(LoadFloors(kv));
  WEIR_RETURN_IF_ERROR(LoadIds(kv));
  while (sessions_.size() > options_.sessions_max) DropSession(uses_.front(), batch);
  return {};
}

Status OpTable::LoadFloors(KvStore& kv) {
  auto it = kv.NewIterator();
  for (it->Seek("F"); it->Valid() && it->key()[0] == 'F'; it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    if (key.kind != 'F') continue;
    const Result<uint64_t> floor = DecodeFloor(it->value());
    if (!floor.ok()) continue;
    Session& session = Use({key.slot, key.session}, nullptr);
    session.floor = session.kept_floor = *floor;
  }
  return it->status();
}

// Ids are of the slot that their object was last in. What does not decode, or has no object, helps
// nobody: a checker tells.
Status OpTable::LoadIds(KvStore& kv) {
  auto it = kv.NewIterator();
  for (it->Seek("I"); it->Valid() && it->key()[0] == 'I'; it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    if (key.kind != 'I') continue;
    Result<OpIdsValue> value = DecodeOpIds(it->value());
    if (!value.ok()) continue;
    const auto [known, first] = objects_.try_emplace(key.id);
    if (first) {
      const Result<std::string> head = kv.Get(HeadKey(key.id));
      if (!head.ok() && head.code() != ErrorCode::kNotFound) return head.status();
      const Result<OnodeHead> decoded = head.ok() ? DecodeHead(*head) : head.status();
      if (!decoded.ok()) {
        objects_.erase(known);
        continue;
      }
      known->second.tombstone = decoded->tombstone;
      known->second.index = decoded->slot;
    }
    const SlotId slot = known->second.index.value_or(kNoSlot);
    Session& session = Use({slot, key.session}, nullptr);
    for (const OpIdRecord& id : value->ids) session.ids.emplace(id.number, key.id);
    known->second.sessions[key.session] = std::move(*value);
  }
  return it->status();
}

bool OpTable::IsBelowFloor(ObjectId object, SlotId slot, const OpTerms& op) const {
  const auto session = sessions_.find({slot, op.session});
  if (session != sessions_.end() && op.number < session->second.floor) return true;
  const auto known = objects_.find(object);
  if (known == objects_.end()) return false;
  const auto ids = known->second.sessions.find(op.session);
  return ids != known->second.sessions.end() && op.number < ids->second.object_floor;
}

const OpIdRecord* OpTable::Find(ObjectId object, const OpTerms& op) const {
  const auto known = objects_.find(object);
  if (known == objects_.end()) return nullptr;
  const auto ids = known->second.sessions.find(op.session);
  if (ids == known->second.sessions.end()) return nullptr;
  const auto& records = ids->second.ids;
  const auto found = std::find_if(records.begin(), records.end(),
                                  [&op](const OpIdRecord& id) { return id.number == op.number; });
  return found == records.end() ? nullptr : &*found;
}

// `batch` null: while loading, when nothing goes.
OpTable::Session& OpTable::Use(const Key& key, WriteBatch* batch) {
  const auto [it, added] = sessions_.try_emplace(key);
  if (added) {
    it->second.use = uses_.insert(uses_.end(), key);
    if (batch != nullptr && sessions_.size() > options_.sessions_max) {
      DropSession(uses_.front(), batch);
    }
  } else {
    uses_.splice(uses_.end(), uses_, it->second.use);
  }
  return it->second;
}

void OpTable::RaiseFloors(SlotId slot, const OpTerms& op, WriteBatch* batch) {
  RaiseSession({slot, op.session}, op.session_floor, options_.floor_step, batch);
}

// `step`: by how much the floor on the disk must grow to be written.
void OpTable::RaiseSession(const Key& key, uint64_t floor, uint64_t step, WriteBatch* batch) {
  Session& session = Use(key, batch);
  session.floor = std::max(session.floor, floor);
  if (session.floor >= session.kept_floor + step) {
    session.kept_floor = session.floor;
    batch->Put(SessionFloorKey(key.slot, key.session), EncodeFloor(session.floor));
  }
  for (size_t i = 0; i < kForgottenAtOnce && !session.ids.empty() &&
                     session.ids.begin()->first < session.kept_floor;
       ++i) {
    const ObjectId object = session.ids.begin()->second;
    session.ids.erase(session.ids.begin());
    Forget(object, key.session, session.kept_floor, batch);
  }
}

// The ids of the session below the number; those of other objects are found by them.
void OpTable::Forget(ObjectId object, uint64_t session, uint64_t below, WriteBatch* batch) {
  const auto known = objects_.find(object);
  if (known == objects_.end()) return;
  const auto ids = known->second.sessions.find(session);
  if (ids == known->second.sessions.end()) return;
  OpIdsValue& value = ids->second;
  const auto end = Position(value.ids, below);
  if (end == value.ids.begin()) return;  // gone with another of its ids
  value.ids.erase(value.ids.begin(), end);
  const std::string key = OpIdsKey(object, session);
  if (!value.ids.empty()) {
    batch->Put(key, EncodeOpIds(value));
    return;
  }
  batch->Delete(key);
  known->second.sessions.erase(ids);
  DropIfEmpty(object, batch);
}

void OpTable::DropIfEmpty(ObjectId object, WriteBatch* batch) {
  const auto known = objects_.find(object);
  if (known == objects_.end() || !known->second.sessions.empty()) return;
  if (known->second.tombstone) {
    batch->Delete(HeadKey(object));
    if (known->second.index.has_value()) batch->Delete(IndexKey(*known->second.index, object));
  }
  objects_.erase(known);
}

void OpTable::DropSession(const Key& key, WriteBatch* batch) {
  const auto found = sessions_.find(key);
  const auto ids = std::move(found->second.ids);
  batch->Delete(SessionFloorKey(key.slot, key.session));
  const Key gone = key;  // the key may be the list's
  uses_.erase(found->second.use);
  sessions_.erase(found);
  for (const auto& [number, object] : ids) Forget(object, gone.session, UINT64_MAX, batch);
}

void OpTable::Record(ObjectId object, SlotId slot, const OpTerms& op, const OpIdRecord& record,
                     WriteBatch* batch) {
  const Key key{slot, op.session};
  Session& session = Use(key, batch);
  session.ids.emplace(record.number, object);
  OpIdsValue& value = objects_[object].sessions[op.session];
  value.ids.insert(Position(value.ids, record.number), record);
  if (op.object_floor > value.object_floor) {
    value.object_floor = op.object_floor;
    const auto end = Position(value.ids, op.object_floor);  // not behind the new one
    for (auto it = value.ids.begin(); it != end; ++it) session.ids.erase({it->number, object});
    value.ids.erase(value.ids.begin(), end);
  }
  batch->Put(OpIdsKey(object, op.session), EncodeOpIds(value));
  if (session.ids.size() <= options_.ids_max) return;
  RaiseSession(key, session.ids.begin()->first + 1, 1, batch);
}

bool OpTable::Bury(ObjectId object, std::optional<SlotId> slot) {
  const auto known = objects_.find(object);
  if (known == objects_.end()) return false;
  known->second.tombstone = true;
  known->second.index = slot;
  return true;
}

void OpTable::Revive(ObjectId object) {
  if (const auto known = objects_.find(object); known != objects_.end()) {
    known->second.tombstone = false;
  }
}

}  // namespace weir::osd
