#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

Result<wire::StatfsReply> StatFs(Operation& op, const wire::Empty&) {
  WEIR_ASSIGN_OR_RETURN(const auto state, op.txn.GetRecord<StateRecord>(kStateKey));
  const SpaceInfo space = op.context.cluster.Space();
  wire::StatfsReply reply;
  reply.set_capacity_bytes(space.capacity_bytes);
  reply.set_free_bytes(space.free_bytes);
  reply.set_inodes(state.has_value() ? state->inode_count() : 0);
  return reply;
}

}  // namespace weir::mds
