#include "mds/ns/class_resolver.h"

#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "mds/ns/operation.h"

namespace weir::mds {
namespace {
constexpr size_t kDirectoriesMax = 100'000;  // remembered; forgetting all of them is cheap and rare
constexpr int kDeepestDirectory = 100'000;   // a longer chain of parents is a cycle, so corrupt
}  // namespace

Result<TagSource> ClassResolver::SourceOf(Operation& op, const Inode& inode) {
  if (!inode.rec.tag().empty()) {
    WEIR_ASSIGN_OR_RETURN(std::string path, PathOf(op, inode));
    return TagSource{inode.rec.tag(), std::move(path), inode.id};
  }
  if (inode.id == kRootInode.value) return TagSource{};
  WEIR_ASSIGN_OR_RETURN(const Shared source, SourceOfDirectory(op, inode.rec.parent()));
  return *source;
}

Result<ResolvedClass> ClassResolver::Resolve(Operation& op, const Inode& inode, bool explain) {
  WEIR_ASSIGN_OR_RETURN(const TagSource source, SourceOf(op, inode));
  const ClusterView& cluster = op.context.cluster;
  ResolvedClass resolved;
  if (source.tag.empty()) {
    if (!explain) return resolved;  // his mount judges untagged files by itself
    const Credentials& who = op.who();
    resolved.id = cluster.UntaggedClass({who.uid, who.gid, who.groups, who.exe, op.context.client,
                                         op.context.mount_class, who.cgroup},
                                        &resolved.reason);
    return resolved;
  }
  resolved.tagged = true;
  const auto id = cluster.ClassIdOf(source.tag);
  resolved.id = id.value_or(kBestEffort.value);
  if (!explain) return resolved;
  resolved.reason = id.has_value() ? source.tag + " (from " + source.path + ")"
                                   : "best-effort (class " + source.tag + " of " + source.path +
                                         " does not exist)";
  return resolved;
}

Result<ClassResolver::Shared> ClassResolver::SourceOfDirectory(Operation& op, uint64_t directory) {
  std::vector<uint64_t> untagged;
  Shared found;
  for (uint64_t at = directory; found == nullptr;) {
    if (const auto known = of_directory_.find(at); known != of_directory_.end()) {
      found = known->second;
      break;
    }
    untagged.push_back(at);
    if (untagged.size() > kDeepestDirectory) {
      return InodeError(ErrorCode::kCorrupt, directory, "has a cycle among its parents");
    }
    Result<Inode> inode = op.LoadParent(at);
    // The parent of an orphan may be gone: it is charged as if it were untagged.
    if (!inode.ok() && inode.code() == ErrorCode::kStale)
      return Shared(std::make_shared<TagSource>());
    if (!inode.ok()) return inode.status();
    if (!inode->rec.tag().empty()) {
      WEIR_ASSIGN_OR_RETURN(std::string path, PathOf(op, *inode));
      found = std::make_shared<TagSource>(TagSource{inode->rec.tag(), std::move(path), at});
    } else if (at == kRootInode.value) {
      found = std::make_shared<TagSource>();
    }
    at = inode->rec.parent();
  }
  if (of_directory_.size() > kDirectoriesMax) Forget();
  for (const uint64_t at : untagged) of_directory_[at] = found;
  return found;
}

Result<std::string> ClassResolver::PathOf(Operation& op, const Inode& inode) {
  if (inode.id == kRootInode.value) return std::string("/");
  std::string path;
  InodeRecord record = inode.rec;
  for (int depth = 0; depth < kDeepestDirectory; ++depth) {
    path.insert(0, "/" + record.name());
    if (record.parent() == kRootInode.value) return path;
    Result<Inode> parent = op.LoadParent(record.parent());
    if (!parent.ok() && parent.code() != ErrorCode::kStale) return parent.status();
    if (!parent.ok()) return path;  // an orphan's: as far as it is known
    record = std::move(parent->rec);
  }
  return InodeError(ErrorCode::kCorrupt, inode.id, "has a cycle among its parents");
}

}  // namespace weir::mds
