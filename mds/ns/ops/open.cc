#include <fcntl.h>

#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {
namespace {

constexpr uint32_t kOpenForExec = 0x20;  // the kernel's FMODE_EXEC, which execve(2) opens with

uint32_t MaskOf(uint32_t flags) {
  if ((flags & kOpenForExec) != 0) return kMayExecute;
  uint32_t mask = kMayRead;
  if ((flags & O_ACCMODE) == O_WRONLY) mask = kMayWrite;
  if ((flags & O_ACCMODE) == O_RDWR) mask = kMayRead | kMayWrite;
  if ((flags & O_TRUNC) != 0) mask |= kMayWrite;
  return mask;
}

}  // namespace

EntryResult Open(Operation& op, const wire::OpenRequest& request) {
  WEIR_RETURN_IF_ERROR(op.CheckHasHeard(request.epoch()));
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  const uint32_t mask = MaskOf(request.flags());
  if (inode.IsDirectory() && (mask & kMayWrite) != 0) {
    return InodeError(ErrorCode::kIsDirectory, inode.id, "is a directory");
  }
  op.Judges(inode);
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), inode.rec, mask));
  if (inode.IsRegular() && (mask & kMayWrite) != 0) op.claimed.push_back(inode.id);
  // Whoever opens during a truncation could write what its end would cut off.
  if (inode.IsRegular()) op.waits_for_truncate = inode.id;
  if (inode.IsRegular() && (mask & kMayWrite) != 0) {
    WEIR_RETURN_IF_ERROR(op.CutLooseEnd(&inode, request.caller().class_id()));
    op.effects.must_last = true;  // who may have written to it
  }
  op.Opened(inode.id, request.flags());
  return op.LeasedEntry(inode);
}

}  // namespace weir::mds
