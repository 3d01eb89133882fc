// Data reached the OSDs: sizes only grow, times never go back, and the version tells others.
#include <algorithm>

#include "common/placement/striper.h"
#include "mds/ns/class_space.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EntryResult Wrote(Operation& op, const wire::WroteRequest& request) {
  if (op.context.cluster.IsFenced(op.context.session, request.epoch())) {
    return InodeError(ErrorCode::kStaleEpoch, request.inode(), "was given to others since");
  }
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  if (!inode.IsRegular()) return InodeError(ErrorCode::kInvalid, inode.id, "is no regular file");
  if (request.size_at_least() > kMaxFileSize) {
    return InodeError(ErrorCode::kFileTooBig, inode.id, "cannot grow beyond 8 EiB");
  }
  InodeRecord& rec = inode.rec;
  op.CountSize(inode, std::max(rec.size(), request.size_at_least()));
  op.quotas_bind = false;  // the data is there already: the next write will be refused
  const uint64_t size = std::max(rec.size(), request.size_at_least());
  inode.SetSize(size, request.has_space() ? DataAfter(inode, request.space()) : size);
  const int64_t written = request.mtime_ns() == 0 ? op.now() : request.mtime_ns();
  // Who else has it open drops what he read when the time moves, however clocks differ.
  const bool shared = op.context.opens.OpenElsewhere(op.context.session, inode.id);
  rec.set_mtime_ns(std::max(rec.mtime_ns() + (shared ? 1 : 0), written));
  rec.set_ctime_ns(std::max(rec.ctime_ns(), std::max(written, op.now())));
  rec.set_version(rec.version() + 1);
  if (request.kill_suid()) rec.set_mode(WithoutSetIds(rec.mode()));
  // The data is there already: what is reported is charged, whatever room there is.
  WEIR_RETURN_IF_ERROR(ChargeSize(op, &inode, request.class_id()));
  op.Store(inode);
  WEIR_RETURN_IF_ERROR(op.SettleUsage());  // before the answer tells the room left
  return op.LeasedEntry(inode);
}

}  // namespace weir::mds
