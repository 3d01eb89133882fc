// open(O_CREAT) of a regular file: makes it, or opens the one that is there unless O_EXCL. What
// else is there, a kernel that knew of no name opens by itself when it has looked again: kStale.
#include <sys/stat.h>

#include <utility>

#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EntryResult Create(Operation& op, const wire::CreateRequest& request) {
  WEIR_RETURN_IF_ERROR(op.CheckHasHeard(request.epoch()));
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(Inode parent, op.LoadParent(request.parent()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), parent.rec, kMayExecute));
  const auto existing = op.FindDentry(parent.id, request.name());
  if (existing.ok() && !request.exclusive()) {
    if (S_ISDIR(existing->mode())) {
      return InodeError(ErrorCode::kIsDirectory, existing->inode(), "is a directory");
    }
    if (!S_ISREG(existing->mode())) {
      return InodeError(ErrorCode::kStale, existing->inode(), "is no regular file");
    }
    wire::OpenRequest open;
    *open.mutable_caller() = request.caller();
    open.set_inode(existing->inode());
    open.set_flags(request.open_flags());
    open.set_epoch(request.epoch());
    return Open(op, open);
  }
  WEIR_RETURN_IF_ERROR(CheckNewName(request.name()));
  if (existing.ok()) {
    return Status(ErrorCode::kExists, "'" + request.name() + "' exists already");
  }
  if (existing.code() != ErrorCode::kNotFound) return existing.status();
  const uint32_t mode = S_IFREG | (request.mode() & 07777);
  EntryResult made = MakeAbsent(op, request, mode, std::move(parent));
  if (!made.ok()) return made;
  made->set_made(true);
  const uint64_t inode = made->attr().inode();
  op.Opened(inode, request.open_flags());
  WEIR_RETURN_IF_ERROR(op.OfferFileLease(inode, &*made));
  if (made->file_lease().write()) made->mutable_file_lease()->set_unseen(true);
  return made;
}

}  // namespace weir::mds
