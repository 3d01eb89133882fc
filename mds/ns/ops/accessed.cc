// Reads move the access time, as Linux does it: see AccessedRequest. Nobody's data is older for it,
// so the version stays; whoever remembers the time hears of it, soon.
#include <algorithm>
#include <vector>

#include "common/posix/file_times.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {

EmptyResult Accessed(Operation& op, const wire::AccessedRequest& request) {
  std::vector<uint64_t> inodes;
  for (const auto& read : request.reads()) inodes.push_back(read.inode());
  WEIR_RETURN_IF_ERROR(op.Fetch(inodes));
  for (const auto& read : request.reads()) {
    Result<Inode> inode = op.Load(read.inode());
    if (!inode.ok()) {
      if (inode.code() == ErrorCode::kStale) continue;  // removed since
      return inode.status();
    }
    InodeRecord& rec = inode->rec;
    const auto age = static_cast<int64_t>(std::min<uint64_t>(read.age_ns(), INT64_MAX));
    const int64_t when = op.now() - std::min(age, op.now());
    if (when <= rec.atime_ns() || when <= rec.atime_set_ns()) continue;
    const FileTimes times{rec.atime_ns(), rec.mtime_ns(), rec.ctime_ns()};
    if (!request.strict() && !ReadMovesAtime(times, when)) continue;
    rec.set_atime_ns(when);
    // Not a change that others wait for.
    inode->IsDirectory() ? op.StoreContents(*inode) : op.StoreQuietly(*inode);
    op.context.file_leases.Read(op.context.session, inode->id);
  }
  return wire::Empty();
}

}  // namespace weir::mds
