#include <unordered_set>
#include <vector>

#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EmptyResult Release(Operation& op, const wire::ReleaseRequest& request) {
  std::vector<uint64_t> purged(request.kept().begin(), request.kept().end());
  purged.insert(purged.end(), request.inodes().begin(), request.inodes().end());
  WEIR_RETURN_IF_ERROR(op.BeforePurge(purged));
  for (const uint64_t inode : request.inodes()) {
    op.context.opens.Close(op.context.session, inode);
    op.context.grants.End(op.context.session, inode);
    op.context.file_leases.Closed(op.context.session, inode);
  }
  const std::unordered_set<uint64_t> blank(request.blank().begin(), request.blank().end());
  for (const uint64_t inode : request.kept()) {
    op.context.lingering.LetGo(op.context.session, inode);
    WEIR_RETURN_IF_ERROR(op.PurgeIfUnused(inode, blank.contains(inode)));
  }
  for (const uint64_t inode : request.inodes()) {
    WEIR_RETURN_IF_ERROR(op.PurgeIfUnused(inode));
  }
  return wire::Empty();
}

}  // namespace weir::mds
