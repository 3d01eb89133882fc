#include <sys/stat.h>

#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

TouchedResult Unlink(Operation& op, const wire::NameRequest& request) {
  op.SetCaller(request.caller());
  op.keeps = request.keep();
  WEIR_ASSIGN_OR_RETURN(Inode parent, op.LoadParent(request.parent()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayExecute));
  const std::string& name = request.name();
  if (name == "." || name == "..") {
    return Status(ErrorCode::kIsDirectory, "'" + name + "' is a directory");
  }
  if (name.size() > kNameMax) return CheckNewName(name);
  WEIR_ASSIGN_OR_RETURN(const DentryRecord dentry, op.FindDentry(parent.id, name));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayWrite));
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(dentry.inode()));
  op.Judges(inode);
  WEIR_RETURN_IF_ERROR(CheckSticky(op.who(), parent.rec, inode.rec));
  if (inode.IsDirectory()) {
    return InodeError(ErrorCode::kIsDirectory, inode.id, "is a directory: use rmdir");
  }
  WEIR_ASSIGN_OR_RETURN(const TagSource before, op.context.classes.SourceOf(op, inode));
  op.RemoveDentry(&parent, name, dentry);
  op.Modified(&parent);
  op.StoreParent(parent);
  WEIR_RETURN_IF_ERROR(op.DropLink(&inode, parent.id, name));
  wire::TouchedReply reply;
  reply.add_inodes(inode.id);
  reply.set_kept(op.effects.kept);
  op.FillParent(parent, &reply);
  if (inode.rec.nlink() == 0) return reply;
  // A file whose primary link went may now lie below another tag.
  WEIR_ASSIGN_OR_RETURN(const TagSource after, op.context.classes.SourceOf(op, inode));
  if (before.inode != after.inode) op.TagsChanged();
  return reply;
}

}  // namespace weir::mds
