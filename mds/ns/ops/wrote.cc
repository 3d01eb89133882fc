// Data reached the OSDs: sizes only grow, stamps never go back, and the version tells others.
// Attributes that were set at the mount meanwhile come with it.
#include <algorithm>

#include "common/placement/striper.h"
#include "common/posix/file_times.h"
#include "mds/ns/acl.h"
#include "mds/ns/class_space.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {
namespace {

// Sizes and space. What is there already is counted and charged, whatever room there is.
Status TakeData(Operation& op, const wire::WroteRequest& request, Inode* inode) {
  const uint64_t size = std::max(inode->rec.size(), request.size_at_least());
  op.quotas_bind = false;  // the next write will be refused
  const uint64_t reach = inode->Reach();
  inode->SetSize(size, request.has_space() ? DataAfter(*inode, request.space()) : size);
  op.CountReach(*inode, reach);
  return ChargeSize(op, inode, request.class_id());
}

}  // namespace

void TakeWriteTime(const Operation& op, int64_t mtime_ns, Inode* inode) {
  InodeRecord& rec = inode->rec;
  const int64_t written = mtime_ns == 0 ? op.now() : op.context.stamps.Saw(mtime_ns);
  const int64_t before = rec.mtime_ns();
  int64_t mtime = MtimeAfterWrite({rec.atime_ns(), before, rec.ctime_ns()}, written);
  // Who else has it open drops what he read when the time moves.
  const bool shared = op.context.opens.OpenElsewhere(op.context.session, inode->id);
  if (shared && mtime == before) mtime = op.context.stamps.Saw(mtime + 1);
  rec.set_mtime_ns(mtime);
  rec.set_ctime_ns(std::max(rec.ctime_ns(), mtime));
}

namespace {

// The mount has judged that whoever set them may (client/vfs/held_attributes.h).
void TakeAttributes(Operation& op, const wire::WroteRequest::Attributes& attributes, Inode* inode) {
  InodeRecord& rec = inode->rec;
  if (attributes.has_uid()) rec.set_uid(attributes.uid());
  if (attributes.has_gid()) rec.set_gid(attributes.gid());
  if (attributes.has_uid() || attributes.has_gid()) {
    rec.set_mode(WithoutSetIds(rec, true));
    op.DropCapability(inode);
  }
  if (attributes.has_mode()) ReplaceMode(attributes.mode(), &rec);
  if (attributes.has_atime_ns()) {
    rec.set_atime_ns(attributes.atime_ns());
    rec.set_atime_set_ns(op.now());
  }
  if (attributes.has_mtime_ns()) rec.set_mtime_ns(attributes.mtime_ns());
  if (attributes.has_ctime_ns()) {
    const int64_t ctime = op.context.stamps.Saw(attributes.ctime_ns());
    rec.set_ctime_ns(std::max(rec.ctime_ns(), ctime));
  }
}

}  // namespace

EntryResult Wrote(Operation& op, const wire::WroteRequest& request) {
  if (op.context.cluster.IsFenced(op.context.session, request.epoch())) {
    return InodeError(ErrorCode::kStaleEpoch, request.inode(), "was given to others since");
  }
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  if (!inode.IsRegular()) return InodeError(ErrorCode::kInvalid, inode.id, "is no regular file");
  if (request.size_at_least() > kMaxFileSize) {
    return InodeError(ErrorCode::kFileTooBig, inode.id, "cannot grow beyond 8 EiB");
  }
  const bool has_data = !request.has_attributes() || request.size_at_least() > 0 ||
                        request.space().wrote_bytes() > 0 || request.space().freed_bytes() > 0;
  if (has_data) WEIR_RETURN_IF_ERROR(TakeData(op, request, &inode));
  if (!request.has_attributes() || request.mtime_ns() != 0)
    TakeWriteTime(op, request.mtime_ns(), &inode);
  if (request.kill_suid()) inode.rec.set_mode(WithoutSetIds(inode.rec, true));
  if (request.kill_capability()) op.DropCapability(&inode);
  if (request.has_attributes()) TakeAttributes(op, request.attributes(), &inode);
  inode.rec.set_version(inode.rec.version() + 1);
  op.Store(inode);
  WEIR_RETURN_IF_ERROR(op.SettleUsage());  // before the answer tells the room left
  return op.LeasedEntry(inode);
}

}  // namespace weir::mds
