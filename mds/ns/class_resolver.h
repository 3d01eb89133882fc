// ClassResolver: the effective class of an inode for who asks: the tag of the nearest tagged
// ancestor (itself first), else the first rule that matches him, else the session's mount class,
// else class 0. The tag of a directory is remembered until tags change. Threads: under the
// NamespaceDb lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "common/base/result.h"

namespace weir::mds {

class ClusterView;
class InodeRecord;
class Operation;
struct Inode;

struct TagSource {
  std::string tag;   // empty: nothing above is tagged
  std::string path;  // of what carries it
  uint64_t inode = 0;
};

struct ResolvedClass {
  uint32_t id = 0;
  std::string reason;
  bool tagged = false;  // by a tag, so that it holds whoever asks
};

class ClassResolver {
 public:
  Result<TagSource> SourceOf(Operation& op, const Inode& inode);
  // `explain`: with the reason, which takes longer.
  Result<ResolvedClass> Resolve(Operation& op, const Inode& inode, bool explain = false);
  // A tag came, went or moved, or a directory got another path.
  void Forget() { of_directory_.clear(); }

 private:
  using Shared = std::shared_ptr<const TagSource>;
  Result<Shared> SourceOfDirectory(Operation& op, uint64_t directory);
  static Result<std::string> PathOf(Operation& op, const Inode& inode);

  std::unordered_map<uint64_t, Shared> of_directory_;
};

}  // namespace weir::mds
