#include "mds/ns/find_path.h"

#include <algorithm>

#include "mds/ns/ops/ops.h"

namespace weir::mds {
namespace {

Status NotDirectory(const std::string& path) {
  return {ErrorCode::kNotDirectory, "'" + path + "' is not a directory"};
}

// What a step to `path` from the directory `before` it found, in words of paths.
Status Missed(const Status& status, const std::string& before, const std::string& path) {
  if (status.code() == ErrorCode::kNotFound) {
    return {ErrorCode::kNotFound, "there is no '" + path + "'"};
  }
  if (status.code() == ErrorCode::kNotDirectory) return NotDirectory(before);
  return status.Annotate("'" + path + "'");
}

}  // namespace

Result<Inode> FindPath(Operation& op, const std::string& path) {
  uint64_t at = kRootInode.value;
  std::string walked;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") return {ErrorCode::kInvalid, "'..' leads out of a path: name it without"};
    wire::NameRequest step;  // as root
    step.set_parent(at);
    step.set_name(name);
    const std::string before = walked;
    walked += "/" + name;
    const EntryResult found = Lookup(op, step);
    if (!found.ok()) return Missed(found.status(), before, walked);
    at = found->attr().inode();
  }
  return op.Load(at);
}

Result<Inode> FindDirectory(Operation& op, const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(Inode found, FindPath(op, path));
  if (!found.IsDirectory()) return NotDirectory(path.starts_with('/') ? path : "/" + path);
  return found;
}

}  // namespace weir::mds
