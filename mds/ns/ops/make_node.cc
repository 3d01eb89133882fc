// mkdir, symlink, mknod of every type.
#include <sys/stat.h>

#include "mds/ns/acl.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"
#include "mds/ns/usage.h"

namespace weir::mds {
namespace {

constexpr size_t kTargetMax = 4095;  // PATH_MAX without its NUL

Status CheckType(const Operation& op, const wire::CreateRequest& request, uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFIFO:
    case S_IFSOCK:
      return Status::Ok();
    case S_IFCHR:
    case S_IFBLK: {
      const bool whiteout = S_ISCHR(mode) && request.rdev() == 0;  // of overlayfs: no device
      if (whiteout || op.who().Can(Capability::kMknod)) return Status::Ok();
      return {ErrorCode::kPermission, "only root makes device files"};
    }
    case S_IFLNK:
      if (request.symlink_target().empty()) {
        return {ErrorCode::kNotFound, "a symbolic link needs a target"};
      }
      if (request.symlink_target().size() > kTargetMax) {
        return {ErrorCode::kNameTooLong, "a symbolic link's target has at most 4095 bytes"};
      }
      return Status::Ok();
    default:
      return {ErrorCode::kInvalid, "mode " + std::to_string(mode) + " has no known type"};
  }
}

}  // namespace

EntryResult MakeNode(Operation& op, const wire::CreateRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(Inode parent, op.LoadParent(request.parent()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayExecute));
  WEIR_RETURN_IF_ERROR(CheckNewName(request.name()));
  const auto existing = op.FindDentry(parent.id, request.name());
  if (existing.ok()) {
    return Status(ErrorCode::kExists, "'" + request.name() + "' exists already");
  }
  if (existing.code() != ErrorCode::kNotFound) return existing.status();
  return MakeAbsent(op, request, request.mode(), std::move(parent));
}

EntryResult MakeAbsent(Operation& op, const wire::CreateRequest& request, uint32_t mode,
                       Inode parent) {
  if (parent.rec.nlink() == 0) {
    return InodeError(ErrorCode::kNotFound, parent.id, "is a removed directory");
  }
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayWrite));
  WEIR_RETURN_IF_ERROR(CheckType(op, request, mode));
  if (S_ISREG(mode)) {
    WEIR_RETURN_IF_ERROR(op.context.cluster.UsePool(parent.rec.layout().pool()));
  }

  WEIR_ASSIGN_OR_RETURN(Inode inode, op.NewInode(parent, request.name(), mode));
  InheritAcl(parent.rec, request.umask(), &inode.rec);
  if (S_ISCHR(mode) || S_ISBLK(mode)) inode.rec.set_rdev(request.rdev());
  if (S_ISLNK(mode)) {
    inode.rec.set_symlink_target(request.symlink_target());
    inode.rec.set_size(request.symlink_target().size());
  }
  op.Store(inode);
  op.Count(parent.id, ShareOf(inode.rec), 1);
  op.AddDentry(&parent, request.name(), inode);
  op.Modified(&parent);
  op.StoreParent(parent);
  EntryResult entry = op.Entry(inode);
  if (!entry.ok()) return entry;
  op.FillParent(parent, &*entry);
  WEIR_RETURN_IF_ERROR(op.OfferLease(inode, &*entry));
  if (!inode.IsRegular()) WEIR_RETURN_IF_ERROR(op.OfferFileLease(inode.id, &*entry));
  return entry;
}

}  // namespace weir::mds
