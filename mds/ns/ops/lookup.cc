#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EntryResult Lookup(Operation& op, const wire::NameRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(const Inode directory, op.LoadDirectory(request.parent()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), directory.rec, kMayExecute));
  const std::string& name = request.name();
  if (name.size() > kNameMax) return CheckNewName(name);
  if (name == ".") return op.Entry(directory);
  uint64_t found = directory.rec.parent();
  if (name != "..") {
    WEIR_ASSIGN_OR_RETURN(const DentryRecord dentry, op.FindDentry(directory.id, name));
    found = dentry.inode();
  }
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(found));
  return op.Entry(inode);
}

}  // namespace weir::mds
