// open(O_TMPFILE): a regular file that is below a directory, for its class, layout and group, but
// has no name there. It lives as long as somebody holds it open, unless it gets a name.
#include <fcntl.h>
#include <sys/stat.h>

#include "mds/ns/acl.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EntryResult MakeUnnamed(Operation& op, const wire::CreateRequest& request) {
  WEIR_RETURN_IF_ERROR(op.CheckHasHeard(request.epoch()));
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(const Inode parent, op.LoadParent(request.parent()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayWrite | kMayExecute));
  if (parent.rec.nlink() == 0) {
    return InodeError(ErrorCode::kNotFound, parent.id, "is a removed directory");
  }
  WEIR_RETURN_IF_ERROR(op.context.cluster.UsePool(parent.rec.layout().pool()));
  const uint32_t mode = S_IFREG | (request.mode() & 07777);
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.NewInode(parent, "", mode));
  InheritAcl(parent.rec, request.umask(), &inode.rec);
  inode.rec.set_nlink(0);
  inode.rec.set_linkable((request.open_flags() & O_EXCL) == 0);
  op.Store(inode);
  op.txn.Put(MakeKey(Table::kOrphan, inode.id), "");
  op.Opened(inode.id, request.open_flags());
  return op.Entry(inode);
}

}  // namespace weir::mds
