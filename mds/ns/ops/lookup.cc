#include <string>
#include <vector>

#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {
namespace {

// Whether a way leads down to it from the directory `top`, by any of its names.
Result<bool> LiesBelow(Operation& op, const Inode& inode, uint64_t top) {
  if (top == kRootInode.value || inode.id == top) return true;
  std::vector<uint64_t> directories{inode.rec.parent()};
  const std::string links = MakeKey(Table::kBackref, inode.id);
  WEIR_RETURN_IF_ERROR(op.txn.Scan(links, PrefixEnd(links), [&](std::string_view key, auto) {
    directories.push_back(ReadBigEndian(key, kSecondNumber));
    return true;
  }));
  for (uint64_t at : directories) {
    while (at != top && at != kRootInode.value) {
      WEIR_ASSIGN_OR_RETURN(const Inode above, op.LoadParent(at));
      at = above.rec.parent();
    }
    if (at == top) return true;
  }
  return false;
}

// What a file handle names, or the directory above it. Nobody's right to pass directories counts:
// the kernel has asked whether he may use handles.
EntryResult LookupByHandle(Operation& op, const wire::NameRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.parent()));
  if (request.name() == "..") {
    WEIR_ASSIGN_OR_RETURN(inode, op.Load(inode.rec.parent()));
  }
  // A kernel in which it is open does not ask, and whoever has closed it may tell only later.
  if (inode.rec.nlink() == 0) {
    return InodeError(ErrorCode::kStale, inode.id, "has no name any more");
  }
  WEIR_ASSIGN_OR_RETURN(const bool below, LiesBelow(op, inode, request.handle_below()));
  if (!below) return InodeError(ErrorCode::kStale, inode.id, "lies outside of what is mounted");
  return op.LeasedEntry(inode);
}

}  // namespace

EntryResult Lookup(Operation& op, const wire::NameRequest& request) {
  op.SetCaller(request.caller());
  if (request.handle_below() != 0) return LookupByHandle(op, request);
  WEIR_ASSIGN_OR_RETURN(const Inode directory, op.LoadParent(request.parent()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), directory.rec, kMayExecute));
  const std::string& name = request.name();
  if (name.size() > kNameMax) return CheckNewName(name);
  uint64_t found = name == "." ? directory.id : directory.rec.parent();
  if (name != "." && name != "..") {
    WEIR_ASSIGN_OR_RETURN(const DentryRecord dentry, op.FindDentry(directory.id, name));
    found = dentry.inode();
  }
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(found));
  EntryResult entry = op.LeasedEntry(inode);
  if (entry.ok()) WEIR_RETURN_IF_ERROR(op.OfferLease(inode, &*entry));
  return entry;
}

}  // namespace weir::mds
