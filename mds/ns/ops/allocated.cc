// OSDs keep space for a range of a file: fallocate. Unlike for data that is there already quotas
// and capacities bind: whoever is refused gives the space back.
#include <algorithm>

#include "common/base/buffer.h"
#include "common/placement/striper.h"
#include "mds/ns/acl.h"
#include "mds/ns/class_space.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {
namespace {

// Size and space, and what they are charged for.
Status TakeSpace(Operation& op, const wire::AllocatedRequest& request, Inode* inode) {
  InodeRecord& rec = inode->rec;
  const uint64_t reach = inode->Reach();
  if (request.end() > reach) {
    WEIR_RETURN_IF_ERROR(CheckRoom(op, *inode, request.class_id(), request.end()));
  }
  const uint64_t behind_end = request.end() - std::min(request.end(), rec.size());
  const uint64_t beyond =
      std::min<uint64_t>({request.beyond_bytes(), request.grown_bytes(), behind_end + kBlockSize});
  const uint64_t grown = std::min(request.grown_bytes(), kMaxFileSize) - beyond;
  rec.set_allocated_end(std::max(rec.allocated_end(), request.end()));
  rec.set_beyond_bytes(rec.beyond_bytes() + beyond);
  const uint64_t size = request.keep_size() ? rec.size() : std::max(rec.size(), request.end());
  inode->SetSize(size, inode->DataBeforeEnd() + grown);
  if (size >= rec.allocated_end()) rec.set_beyond_bytes(0);
  op.CountReach(*inode, reach);
  return ChargeSize(op, inode, request.class_id());
}

}  // namespace

EntryResult Allocated(Operation& op, const wire::AllocatedRequest& request) {
  for (const auto& use : request.used()) op.context.cluster.OsdUses(use.osd(), use.used_bytes());
  if (op.context.cluster.IsFenced(op.context.session, request.epoch())) {
    return InodeError(ErrorCode::kStaleEpoch, request.inode(), "was given to others since");
  }
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  if (!inode.IsRegular()) return InodeError(ErrorCode::kInvalid, inode.id, "is no regular file");
  if (request.end() > kMaxFileSize) {
    return InodeError(ErrorCode::kFileTooBig, inode.id, "cannot grow beyond 8 EiB");
  }
  WEIR_RETURN_IF_ERROR(TakeSpace(op, request, &inode));
  InodeRecord& rec = inode.rec;
  if (!request.keeps_times()) TakeWriteTime(op, request.mtime_ns(), &inode);
  if (request.kill_suid()) rec.set_mode(WithoutSetIds(rec, true));
  if (request.kill_capability()) op.DropCapability(&inode);
  rec.set_version(rec.version() + 1);
  op.Store(inode);
  WEIR_RETURN_IF_ERROR(op.SettleUsage());  // before the answer tells the room left
  return op.LeasedEntry(inode);
}

}  // namespace weir::mds
