// chmod, chown, utimens, truncate: one request may carry several of them; all or none happen.
#include <sys/stat.h>

#include <algorithm>

#include "common/placement/striper.h"
#include "mds/ns/acl.h"
#include "mds/ns/class_space.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"
#include "mds/ns/usage.h"

namespace weir::mds {
namespace {

// By chown(2), which needs who may chmod where there is something to lose.
Status LoseSetIds(const Operation& op, Inode* inode) {
  if (inode->IsDirectory()) return Status::Ok();
  const uint32_t mode = WithoutSetIds(inode->rec, op.who().MayRunAsGroup(inode->rec));
  if (mode != inode->rec.mode() && !op.who().Owns(inode->rec)) {
    return InodeError(ErrorCode::kPermission, inode->id, "belongs to somebody else");
  }
  inode->rec.set_mode(mode);
  return Status::Ok();
}

Status ChangeOwner(Operation& op, const wire::SetAttrRequest& request, Inode* inode) {
  // A file capability goes as well; without a new owner the kernel removes it by itself.
  if (request.same_owner()) return LoseSetIds(op, inode);
  if (!request.has_uid() && !request.has_gid()) return Status::Ok();
  const uint32_t uid = request.has_uid() ? request.uid() : inode->rec.uid();
  const uint32_t gid = request.has_gid() ? request.gid() : inode->rec.gid();
  const Credentials& who = op.who();
  const bool gives_away = uid != inode->rec.uid();
  const bool other_group = gid != inode->rec.gid();
  const bool his_own = who.uid == inode->rec.uid() && !gives_away;
  const bool may = (his_own && (!other_group || who.InGroup(gid))) ||
                   (who.Can(Capability::kChown, inode->rec) && who.Maps(uid, gid));
  if (!may) {
    return InodeError(ErrorCode::kPermission, inode->id,
                      "can be given away by root only, and to a group of the owner's by the owner");
  }
  if (gives_away || other_group) WEIR_RETURN_IF_ERROR(op.TakeNames(*inode));
  WEIR_RETURN_IF_ERROR(LoseSetIds(op, inode));
  if (!inode->IsDirectory()) op.DropCapability(inode);
  inode->rec.set_uid(uid);
  inode->rec.set_gid(gid);
  return Status::Ok();
}

// What a file loses by a change of its data: mounts ask for that before they write, in anybody's
// name, and a change of size is one.
void DropRights(Operation& op, const wire::SetAttrRequest& request, Inode* inode) {
  const bool cuts = request.has_size();
  const Credentials& who = op.who();
  if (request.kill_suid() || (cuts && !who.Can(Capability::kFsetid))) {
    const bool his_group = who.unknown || who.InGroup(inode->rec.gid());
    inode->rec.set_mode(WithoutSetIds(inode->rec, his_group));
  }
  if (request.kill_capability() || cuts) op.DropCapability(inode);
}

// A kernel that cannot leave it to us takes set-id bits off a file in the name of whoever writes.
bool OnlyDropsSetIds(uint32_t before, uint32_t after) {
  return before != after &&
         (before & ~static_cast<uint32_t>(S_ISUID | S_ISGID)) ==
             (after & ~static_cast<uint32_t>(S_ISUID | S_ISGID)) &&
         (after & ~before) == 0;
}

Status ChangeMode(const Operation& op, const wire::SetAttrRequest& request, Inode* inode) {
  if (!request.has_mode()) return Status::Ok();
  uint32_t mode = request.mode() & 07777;
  const bool writes = inode->IsRegular() && OnlyDropsSetIds(inode->rec.mode() & 07777, mode) &&
                      CheckAccess(op.who(), inode->rec, kMayWrite).ok();
  if (!op.who().Owns(inode->rec) && !writes) {
    return InodeError(ErrorCode::kPermission, inode->id, "belongs to somebody else");
  }
  if (!op.who().MayRunAsGroup(inode->rec)) mode &= ~static_cast<uint32_t>(S_ISGID);
  ReplaceMode(mode, &inode->rec);
  return Status::Ok();
}

Status CheckTimes(const Operation& op, const wire::SetAttrRequest& request, const Inode& inode) {
  const bool exact = request.has_atime_ns() || request.has_mtime_ns();
  if ((!exact && !request.atime_now() && !request.mtime_now()) || request.has_handle() ||
      request.times_checked()) {
    return Status::Ok();
  }
  if (op.who().Owns(inode.rec)) return Status::Ok();
  if (exact) {
    return InodeError(ErrorCode::kPermission, inode.id, "belongs to somebody else");
  }
  return CheckAccess(op.who(), inode.rec, kMayWrite);
}

void ChangeTimes(const Operation& op, const wire::SetAttrRequest& request, Inode* inode) {
  if (request.has_atime_ns()) inode->rec.set_atime_ns(request.atime_ns());
  if (request.atime_now()) inode->rec.set_atime_ns(op.now());
  if (request.has_atime_ns() || request.atime_now()) inode->rec.set_atime_set_ns(op.now());
  if (request.has_mtime_ns()) inode->rec.set_mtime_ns(request.mtime_ns());
  if (request.mtime_now()) inode->rec.set_mtime_ns(op.now());
}

Status CheckSize(const Operation& op, const wire::SetAttrRequest& request, const Inode& inode) {
  if (!request.has_size()) return Status::Ok();
  if (inode.IsDirectory()) return InodeError(ErrorCode::kIsDirectory, inode.id, "is a directory");
  if (!inode.IsRegular()) {
    return InodeError(ErrorCode::kInvalid, inode.id, "is no regular file: it has no size to set");
  }
  if (request.size() > kMaxFileSize) {
    return InodeError(ErrorCode::kFileTooBig, inode.id, "cannot grow beyond 8 EiB");
  }
  if (!request.has_handle()) return CheckAccess(op.who(), inode.rec, kMayWrite);
  if (request.has_epoch() && op.context.cluster.IsFenced(op.context.session, request.epoch())) {
    return InodeError(ErrorCode::kStaleEpoch, inode.id, "was given to others since");
  }
  return Status::Ok();
}

// Records what the OSDs must still cut off in the same batch as the new size.
Status ChangeSize(Operation& op, const wire::SetAttrRequest& request, Inode* inode) {
  if (!request.has_size()) return Status::Ok();
  op.waits_for_truncate = inode->id;
  const uint32_t claimed = request.caller().class_id();
  if (request.size() > inode->rec.size()) {
    WEIR_RETURN_IF_ERROR(CheckRoom(op, *inode, claimed, request.size()));
  } else {
    op.context.grants.End(op.context.session, inode->id);
  }
  const bool written_elsewhere = op.context.opens.WrittenElsewhere(op.context.session, inode->id);
  const uint64_t reach = std::max(inode->rec.size(), request.known_size());
  const bool loose_end = op.HasLooseEnd(*inode) && !written_elsewhere;
  const bool kept_beyond =
      request.size() <= inode->rec.size() && request.size() < inode->rec.allocated_end();
  const bool data_beyond = request.size() < reach || written_elsewhere || loose_end || kept_beyond;
  // A file that grows over what somebody left behind its end is to have zeros there.
  const uint64_t end = loose_end ? std::min(reach, request.size()) : request.size();
  if (loose_end) op.LooseEndIsCut(inode);
  const uint64_t counted = inode->Reach();
  // Of what a loose end has behind the size nothing was counted.
  const uint64_t data_bytes = loose_end ? 0 : inode->DataBytes();
  if (data_beyond && end <= inode->rec.size()) inode->DropBeyondEnd();
  inode->SetSize(request.size(), inode->DataBeforeEnd());
  if (data_beyond) inode->DropBeyondEnd();
  op.CountReach(*inode, counted);
  WEIR_RETURN_IF_ERROR(ChargeSize(op, inode, claimed));
  if (!request.has_ctime_ns()) inode->rec.set_mtime_ns(op.now());  // else it comes along
  if (!data_beyond) return Status::Ok();
  return op.CutOff(*inode, end, claimed, data_bytes);
}

}  // namespace

EntryResult SetAttr(Operation& op, const wire::SetAttrRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  op.Judges(inode);
  WEIR_RETURN_IF_ERROR(CheckSize(op, request, inode));
  WEIR_RETURN_IF_ERROR(CheckTimes(op, request, inode));
  DropRights(op, request, &inode);
  WEIR_RETURN_IF_ERROR(ChangeOwner(op, request, &inode));
  WEIR_RETURN_IF_ERROR(ChangeMode(op, request, &inode));
  if (request.has_ctime_ns()) {
    op.ChangedAt(request.ctime_ns(), &inode);
  } else {
    op.Changed(&inode);
  }
  WEIR_RETURN_IF_ERROR(ChangeSize(op, request, &inode));
  ChangeTimes(op, request, &inode);
  op.Store(inode);
  WEIR_RETURN_IF_ERROR(op.SettleUsage());  // before the answer tells the room left
  return op.LeasedEntry(inode);
}

}  // namespace weir::mds
