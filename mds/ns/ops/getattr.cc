#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EntryResult GetAttr(Operation& op, const wire::InodeRequest& request) {
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(request.inode()));
  return op.LeasedEntry(inode);
}

}  // namespace weir::mds
