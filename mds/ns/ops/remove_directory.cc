#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

TouchedResult RemoveDirectory(Operation& op, const wire::NameRequest& request) {
  op.SetCaller(request.caller());
  op.keeps = request.keep();
  WEIR_ASSIGN_OR_RETURN(Inode parent, op.LoadParent(request.parent()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayExecute));
  const std::string& name = request.name();
  if (name == ".") return Status(ErrorCode::kInvalid, "'.' cannot be removed");
  if (name == "..") return Status(ErrorCode::kNotEmpty, "'..' is not empty");
  if (name.size() > kNameMax) return CheckNewName(name);
  WEIR_ASSIGN_OR_RETURN(const DentryRecord dentry, op.FindDentry(parent.id, name));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayWrite));
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(dentry.inode()));
  WEIR_RETURN_IF_ERROR(CheckSticky(op.who(), parent.rec, inode.rec));
  if (!inode.IsDirectory()) {
    return InodeError(ErrorCode::kNotDirectory, inode.id, "is not a directory: use unlink");
  }
  if (inode.rec.entries() > 0) {
    return InodeError(ErrorCode::kNotEmpty, inode.id,
                      "has " + std::to_string(inode.rec.entries()) + " entries");
  }
  op.RemoveDentry(&parent, name, dentry);
  op.Modified(&parent);
  op.StoreParent(parent);
  WEIR_RETURN_IF_ERROR(op.DropLink(&inode, parent.id, name));
  wire::TouchedReply reply;
  reply.add_inodes(inode.id);
  reply.set_kept(op.effects.kept);
  op.FillParent(parent, &reply);
  return reply;
}

}  // namespace weir::mds
