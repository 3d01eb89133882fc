#include "mds/ns/class_space.h"

#include <algorithm>
#include <string>

#include "common/base/ids.h"
#include "common/base/units.h"
#include "mds/ns/operation.h"

namespace weir::mds {
namespace {

void PutHeld(Operation& op, uint32_t class_id, uint64_t bytes) {
  const std::string key = MakeKey(Table::kHeld, class_id);
  if (bytes == 0) {
    op.txn.Delete(key);
    return;
  }
  HeldRecord held;
  held.set_bytes(bytes);
  op.txn.PutRecord(key, held);
}

Status Uncharge(Operation& op, const InodeRecord& rec) {
  if (rec.charged_bytes() == 0) return Status::Ok();
  WEIR_ASSIGN_OR_RETURN(const uint64_t held, HeldBy(op, rec.charged_class()));
  PutHeld(op, rec.charged_class(), held - std::min(held, rec.charged_bytes()));
  return Status::Ok();
}

// What a file, counted from its first byte, may reach in this class.
Result<uint64_t> EndIn(Operation& op, const Inode& inode, uint32_t class_id, uint64_t capacity) {
  WEIR_ASSIGN_OR_RETURN(uint64_t taken, HeldBy(op, class_id));
  taken += op.context.grants.PromisedIn(class_id);
  taken -= std::min(taken, op.context.grants.PromisedOf(inode.id, class_id));
  if (inode.rec.charged_class() == class_id) taken -= std::min(taken, inode.rec.charged_bytes());
  return capacity - std::min(capacity, taken);
}

}  // namespace

Result<uint64_t> HeldBy(Operation& op, uint32_t class_id) {
  WEIR_ASSIGN_OR_RETURN(const auto held,
                        op.txn.GetRecord<HeldRecord>(MakeKey(Table::kHeld, class_id)));
  return held.has_value() ? held->bytes() : 0;
}

Result<uint32_t> ChargedClass(Operation& op, const Inode& inode, uint32_t claimed) {
  WEIR_ASSIGN_OR_RETURN(const ResolvedClass resolved, op.context.classes.Resolve(op, inode));
  if (resolved.tagged) return resolved.id;
  return claimed >= kFirstUserClass.value ? claimed : kBestEffort.value;
}

Result<Room> RoomFor(Operation& op, const Inode& inode, uint32_t claimed, uint64_t end) {
  Room room;
  WEIR_ASSIGN_OR_RETURN(room.class_id, ChargedClass(op, inode, claimed));
  const auto capacity = op.context.cluster.CapacityOf(room.class_id);
  if (!capacity.has_value()) return room;
  WEIR_ASSIGN_OR_RETURN(room.end, EndIn(op, inode, room.class_id, capacity->bytes));
  if (end <= room.end) return room;
  WEIR_ASSIGN_OR_RETURN(const uint64_t held, HeldBy(op, room.class_id));
  return InodeError(ErrorCode::kQuota, inode.id,
                    "cannot grow to " + FormatSize(end) + ": class '" + capacity->name +
                        "' holds " + FormatSize(held) + " of the " + FormatSize(capacity->bytes) +
                        " that it may (osdctl class set " + capacity->name + " --capacity)");
}

Status CheckRoom(Operation& op, const Inode& inode, uint32_t claimed, uint64_t end) {
  const Result<Room> room = RoomFor(op, inode, claimed, end);
  return room.status();
}

Status ChargeSize(Operation& op, Inode* inode, uint32_t claimed) {
  InodeRecord& rec = inode->rec;
  WEIR_ASSIGN_OR_RETURN(uint32_t class_id, ChargedClass(op, *inode, claimed));
  const uint64_t reach = inode->Reach();
  const bool moves = rec.charged_bytes() > 0 && rec.charged_class() != class_id;
  if (moves && !CheckRoom(op, *inode, claimed, reach).ok()) class_id = rec.charged_class();
  if (rec.charged_class() != class_id || rec.charged_bytes() != reach) {
    WEIR_RETURN_IF_ERROR(Uncharge(op, rec));
    WEIR_ASSIGN_OR_RETURN(const uint64_t held, HeldBy(op, class_id));
    PutHeld(op, class_id, held + reach);
    rec.set_charged_class(class_id);
    rec.set_charged_bytes(reach);
  }
  op.context.grants.Charged(inode->id, class_id, reach);
  return Status::Ok();
}

Status DropCharge(Operation& op, const Inode& inode) {
  op.context.grants.EndFile(inode.id);
  return Uncharge(op, inode.rec);
}

Result<uint64_t> PromisedSpace(Operation& op, const std::vector<uint32_t>& classes) {
  uint64_t promised = 0;
  for (const uint32_t id : classes) {
    const auto capacity = op.context.cluster.CapacityOf(id);
    if (!capacity.has_value()) continue;
    WEIR_ASSIGN_OR_RETURN(const uint64_t held, HeldBy(op, id));
    promised += capacity->bytes - std::min(capacity->bytes, held);
  }
  return promised;
}

}  // namespace weir::mds
