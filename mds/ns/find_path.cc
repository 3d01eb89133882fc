#include "mds/ns/find_path.h"

#include <algorithm>

#include "mds/ns/ops/ops.h"

namespace weir::mds {

Result<Inode> FindPath(Operation& op, const std::string& path) {
  uint64_t at = kRootInode.value;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    wire::NameRequest step;  // as root
    step.set_parent(at);
    step.set_name(name);
    const EntryResult found = Lookup(op, step);
    if (!found.ok()) return found.status();
    at = found->attr().inode();
  }
  return op.Load(at);
}

}  // namespace weir::mds
