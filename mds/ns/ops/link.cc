#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"
#include "mds/ns/usage.h"

namespace weir::mds {
namespace {

// The first link of a file that was made without one is its primary link.
Status NameFirst(Operation& op, Inode* inode, uint64_t parent, const std::string& name) {
  WEIR_ASSIGN_OR_RETURN(const TagSource before, op.context.classes.SourceOf(op, *inode));
  inode->rec.clear_linkable();
  inode->rec.set_parent(parent);
  inode->rec.set_name(name);
  op.txn.Delete(MakeKey(Table::kOrphan, inode->id));
  op.Count(parent, ShareOf(inode->rec), 1);
  WEIR_ASSIGN_OR_RETURN(const TagSource after, op.context.classes.SourceOf(op, *inode));
  if (before.inode != after.inode) op.TagsChanged();
  return Status::Ok();
}

}  // namespace

EntryResult Link(Operation& op, const wire::LinkRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  WEIR_ASSIGN_OR_RETURN(Inode parent, op.LoadParent(request.new_parent()));
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
  const bool unnamed = inode.rec.nlink() == 0;
  if ((unnamed && !inode.rec.linkable()) || parent.rec.nlink() == 0) {
    return Status(ErrorCode::kNotFound, "the file or the directory has been removed");
  }
  if (inode.rec.nlink() >= kLinksMax) {
    return InodeError(ErrorCode::kTooManyLinks, inode.id, "has 65000 links, the most allowed");
  }
  WEIR_RETURN_IF_ERROR(op.CheckRoom());
  inode.rec.set_nlink(inode.rec.nlink() + 1);
  op.Changed(&inode);
  if (unnamed) {
    WEIR_RETURN_IF_ERROR(NameFirst(op, &inode, parent.id, request.new_name()));
  } else {
    op.txn.Put(MakeKey(Table::kBackref, inode.id, parent.id, request.new_name()), "");
  }
  op.Store(inode);
  op.AddDentry(&parent, request.new_name(), inode);
  op.Modified(&parent);
  op.StoreParent(parent);
  EntryResult entry = op.Entry(inode);
  if (entry.ok()) op.FillParent(parent, &*entry);
  return entry;
}

}  // namespace weir::mds
