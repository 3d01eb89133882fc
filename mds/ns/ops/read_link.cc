#include <sys/stat.h>

#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

Result<wire::ReadlinkReply> ReadLink(Operation& op, const wire::InodeRequest& request) {
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(request.inode()));
  if (!S_ISLNK(inode.rec.mode())) {
    return InodeError(ErrorCode::kInvalid, inode.id, "is not a symbolic link");
  }
  wire::ReadlinkReply reply;
  reply.set_target(inode.rec.symlink_target());
  return reply;
}

}  // namespace weir::mds
