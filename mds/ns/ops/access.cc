#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EmptyResult Access(Operation& op, const wire::AccessRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(request.inode()));
  op.Judges(inode);
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), inode.rec, request.mask() & 7));
  return wire::Empty();
}

}  // namespace weir::mds
