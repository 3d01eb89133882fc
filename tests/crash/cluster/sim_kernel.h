// What the kernel above a simulated mount remembers: names and attributes, as long as it was told
// that it may, and until it is told to forget. What it does itself it sees at once.
// Threads: one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace weir::crash {

class SimKernel {
 public:
  explicit SimKernel(Clock& clock) : clock_(clock) {}

  void KeepName(InodeId parent, const std::string& name, InodeId inode, Duration keep) {
    names_[{parent, name}] = {inode.value, clock_.Now() + keep};
  }
  [[nodiscard]] std::optional<InodeId> Name(InodeId parent, const std::string& name) {
    const std::optional<uint64_t> inode = Find(&names_, {parent, name});
    return inode.has_value() ? std::optional(InodeId(*inode)) : std::nullopt;
  }
  void KeepSize(InodeId inode, uint64_t size, Duration keep) {
    sizes_[inode] = {size, clock_.Now() + keep};
  }
  [[nodiscard]] std::optional<uint64_t> Size(InodeId inode) { return Find(&sizes_, inode); }

  void Removed(InodeId parent, const std::string& name) { names_.erase({parent, name}); }
  // The name goes along with what was known of it.
  void Renamed(InodeId from, const std::string& old_name, InodeId to, const std::string& name) {
    names_.erase({to, name});
    auto moved = names_.extract({from, old_name});
    if (moved.empty()) return;
    moved.key() = {to, name};
    names_.insert(std::move(moved));
  }
  void Written(InodeId inode) { sizes_.erase(inode); }
  void Forget(InodeId inode) {
    sizes_.erase(inode);
    std::erase_if(names_, [&](const auto& entry) { return entry.first.first == inode; });
  }

 private:
  struct Kept {
    uint64_t value = 0;
    TimePoint until;
  };
  template <typename Key>
  std::optional<uint64_t> Find(std::map<Key, Kept>* kept, const Key& key) {
    const auto found = kept->find(key);
    if (found == kept->end()) return std::nullopt;
    if (clock_.Now() < found->second.until) return found->second.value;
    kept->erase(found);
    return std::nullopt;
  }

  Clock& clock_;
  std::map<std::pair<InodeId, std::string>, Kept> names_;
  std::map<InodeId, Kept> sizes_;
};

}  // namespace weir::crash
