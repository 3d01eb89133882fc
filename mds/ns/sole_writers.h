// SoleWriters: which of the files that were made in this life of the MDS one session alone has ever
// opened for writing: what that says of their objects is all there is to say (ReleaseRequest's
// `blank`).
//
// Of older files nothing is known. Those with several writers are remembered, kMost of them: with
// one more all that were made so far count as older. Threads: under the NamespaceDb lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace weir::mds {

class SoleWriters {
 public:
  static constexpr size_t kMost = 65'536;

  // Numbers count up; the first file has none before it in this life.
  void Made(uint64_t inode) {
    if (first_ == 0) first_ = inode;
    last_ = std::max(last_, inode);
  }
  // Somebody opens it for writing, and others have before.
  void HasSeveral(uint64_t inode) {
    if (!HasOne(inode)) return;
    several_.insert(inode);
    if (several_.size() <= kMost) return;
    several_.clear();
    first_ = last_ + 1;
  }
  void Gone(uint64_t inode) { several_.erase(inode); }
  [[nodiscard]] bool HasOne(uint64_t inode) const {
    return first_ != 0 && inode >= first_ && !several_.contains(inode);
  }

 private:
  uint64_t first_ = 0;  // 0: none was made
  uint64_t last_ = 0;
  std::unordered_set<uint64_t> several_;
};

}  // namespace weir::mds
