#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EntryResult Link(Operation& op, const wire::LinkRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  WEIR_ASSIGN_OR_RETURN(Inode parent, op.LoadDirectory(request.new_parent()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayExecute));
  WEIR_RETURN_IF_ERROR(CheckNewName(request.new_name()));
  const auto existing = op.FindDentry(parent.id, request.new_name());
  if (existing.ok()) {
    return Status(ErrorCode::kExists, "'" + request.new_name() + "' exists already");
  }
  if (existing.code() != ErrorCode::kNotFound) return existing.status();
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayWrite));
  if (inode.IsDirectory()) {
    return InodeError(ErrorCode::kPermission, inode.id, "is a directory: it has one link only");
  }
  if (inode.rec.nlink() == 0 || parent.rec.nlink() == 0) {
    return Status(ErrorCode::kNotFound, "the file or the directory has been removed");
  }
  if (inode.rec.nlink() >= kLinksMax) {
    return InodeError(ErrorCode::kTooManyLinks, inode.id, "has 65000 links, the most allowed");
  }
  inode.rec.set_nlink(inode.rec.nlink() + 1);
  op.Changed(&inode);
  op.Store(inode);
  op.txn.Put(MakeKey(Table::kBackref, inode.id, parent.id, request.new_name()), "");
  op.AddDentry(&parent, request.new_name(), inode);
  op.Modified(&parent);
  op.Store(parent);
  return op.Entry(inode);
}

}  // namespace weir::mds
