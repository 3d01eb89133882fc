// Once: an operation that names itself is made at most once. What became of it is in the same batch
// as its effect; who asks again is answered when that batch is durable, as the commit queue keeps
// the order. A refusal that is final (no space, another version than the one expected) is kept like
// an effect: a copy that is late would otherwise be carried out when there is room.
#include "osd/store/extent_store.h"

namespace weir::osd {
namespace {

// It says something of the object, not of the disk under it.
bool IsFinal(const Status& status) {
  return status.code() == ErrorCode::kNoSpace || status.code() == ErrorCode::kAgain;
}

Status OtherVersion() {
  return {ErrorCode::kAgain, "the object has another version than the one expected"};
}

}  // namespace

std::unique_lock<std::mutex> ExtentStore::LockTable(const Object& object, const StoreOp& op) {
  const bool needed = op.HasId() || op.kind == StoreOp::Kind::kDelete || !object.exists;
  return needed ? op_table_.Lock() : std::unique_lock<std::mutex>();
}

// False: it is not to be carried out, and answered already or failed.
bool ExtentStore::Admit(const OpPtr& op, WriteBatch* batch) {
  const Object& object = *op->object;
  const OpTerms& terms = op->terms.op;
  const SlotId slot = op->terms.slot.value_or(OpTable::kNoSlot);
  if (op_table_.IsBelowFloor(object.id, slot, terms)) {
    op->failure = {ErrorCode::kStale, "its sender has had an answer, or given it up"};
    return false;
  }
  // Before floors move what it points to.
  const OpIdRecord* known = op_table_.Find(object.id, terms);
  const OpIdRecord record = known != nullptr ? *known : OpIdRecord();
  op_table_.RaiseFloors(slot, terms, batch);
  if (known == nullptr) return true;
  ObjectInfo info{.size = object.size, .version = record.version, .kept = record.kept};
  if (op->terms.append) {
    info.append_offset = record.result;
  } else {
    info.freed_bytes = record.result;
  }
  Status status;
  const auto code = static_cast<ErrorCode>(record.status);
  if (code == ErrorCode::kNoSpace) status = NoSpace();
  if (code == ErrorCode::kAgain) status = OtherVersion();
  Settle(op, std::move(*batch), std::move(status), std::move(info));
  return false;
}

void ExtentStore::CheckExpected(const Object& object, StoreOp& op) {
  if (!op.terms.expected.has_value()) return;
  const replication::Version now = object.exists ? object.data_version : replication::Version{};
  if (now != *op.terms.expected) op.failure = OtherVersion();
}

// With op->failure. What the batch has of floors must reach the disk in any case.
void ExtentStore::Refuse(const OpPtr& op, WriteBatch batch) {
  if (!op->HasId() || !IsFinal(op->failure)) {
    if (!batch.empty()) commits_.Push({.batch = std::move(batch), .done = [](const Status&) {}});
    return;
  }
  Object& object = *op->object;
  object.version = NextVersion(object, *op, &batch);
  const SlotId slot = op->terms.slot.value_or(OpTable::kNoSlot);
  op_table_.Record(object.id, slot, op->terms.op,
                   {.number = op->terms.op.number,
                    .version = object.version,
                    .status = static_cast<uint16_t>(op->failure.code())},
                   &batch);
  if (object.exists) {
    PutIndex(object, op->terms.slot, &batch);
    PutHead(object, &batch);
  } else {
    PutTombstone(object, op->terms.slot, &batch);
  }
  Settle(op, std::move(batch), op->failure, {});
}

// Of one that was carried out. An object that was not there and is not there now gets a tombstone.
void ExtentStore::RecordDone(Object& object, const StoreOp& op, WriteBatch* batch) {
  if (!op.HasId()) return;
  if (!object.exists) object.version = NextVersion(object, op, batch);
  op_table_.Record(object.id, op.terms.slot.value_or(OpTable::kNoSlot), op.terms.op,
                   {.number = op.terms.op.number,
                    .version = object.data_version,  // as the answer has it
                    .result = op.terms.append ? op.offset : op.freed_blocks * kBlockSize,
                    .kept = op.keeps},
                   batch);
  if (!object.exists) PutTombstone(object, op.terms.slot, batch);
}

// Of an object that does not exist and has a new version. Without ids, also when those just
// recorded went at once as there were too many, nothing stays of it.
void ExtentStore::PutTombstone(Object& object, std::optional<SlotId> slot, WriteBatch* batch) {
  if (op_table_.Bury(object.id, slot.has_value() ? slot : object.slot)) {
    PutIndex(object, slot, batch);
    PutHead(object, batch);
    return;
  }
  batch->Delete(HeadKey(object.id));
  if (object.slot.has_value()) batch->Delete(IndexKey(*object.slot, object.id));
  object.slot.reset();
}

// The answer waits for all that was ordered before, the first answer among it.
void ExtentStore::Settle(const OpPtr& op, WriteBatch batch, Status status, ObjectInfo info) {
  op->settled = true;
  Begin();  // until Pump has given back what it had taken
  commits_.Push({.batch = std::move(batch),
                 .done = [op, status = std::move(status),
                          info = std::move(info)](const Status& durable) mutable {
                   if (!durable.ok()) return op->done(durable);
                   if (!status.ok()) return op->done(status);
                   op->done(std::move(info));
                 }});
}

}  // namespace weir::osd
