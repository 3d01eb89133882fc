#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EntryResult Lookup(Operation& op, const wire::NameRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(const Inode directory, op.LoadDirectory(request.parent()));
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
