#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

Result<wire::ResolveClassesReply> ResolveClasses(Operation& op,
                                                 const wire::ResolveClassesRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(const auto state, op.txn.GetRecord<StateRecord>(kStateKey));
  wire::ResolveClassesReply reply;
  reply.set_tag_epoch(state.has_value() ? state->tag_epoch() : 0);
  WEIR_RETURN_IF_ERROR(op.Fetch({request.inodes().begin(), request.inodes().end()}));
  for (const uint64_t id : request.inodes()) {
    wire::EffectiveClass* answer = reply.add_classes();
    Result<Inode> inode = op.Load(id);
    if (!inode.ok() && inode.code() == ErrorCode::kStale) {
      answer->set_reason("best-effort (the inode is gone)");
      continue;
    }
    if (!inode.ok()) return inode.status();
    WEIR_ASSIGN_OR_RETURN(ResolvedClass resolved, op.context.classes.Resolve(op, *inode, true));
    answer->set_class_id(resolved.id);
    answer->set_tagged(resolved.tagged);
    answer->set_reason(std::move(resolved.reason));
  }
  return reply;
}

}  // namespace weir::mds
