// The right to append: whoever has it knows the size. What others had written under theirs is known
// by now, as they gave it back first.
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

Result<wire::AppendReply> Append(Operation& op, const wire::InodeRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(request.inode()));
  if (!inode.IsRegular()) return InodeError(ErrorCode::kInvalid, inode.id, "is no regular file");
  op.waits_for_truncate = inode.id;
  wire::AppendReply reply;
  reply.set_grant(op.context.leases.GrantAppend(op.context.session, inode.id));
  if (reply.grant() != 0) WEIR_RETURN_IF_ERROR(op.RecordLeases());
  wire::EntryReply entry;  // with the room that quotas leave
  WEIR_RETURN_IF_ERROR(op.FillEntry(inode, &entry));
  *reply.mutable_attr() = std::move(*entry.mutable_attr());
  return reply;
}

}  // namespace weir::mds
