// UntoldDirectories: the table of directories whose parents do not count all of them (usage.h), as
// the next operation must see it. Looking into the store for the few that there are would pass all
// that were told lately, ten times a second: deleted keys stay in RocksDB's memory for long.
//
// Threads: under the NamespaceDb lock.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

namespace weir::mds {

class UntoldDirectories {
 public:
  // Not before the store has been read, nor after a commit has failed.
  [[nodiscard]] bool known() const { return known_; }
  void Learn(std::set<uint64_t> directories) {
    directories_ = std::move(directories);
    known_ = true;
  }
  void Unlearn() { known_ = false; }
  // A prepared change of the table.
  void Note(uint64_t directory, bool untold) {
    if (!known_) return;
    if (untold) {
      directories_.insert(directory);
    } else {
      directories_.erase(directory);
    }
  }
  [[nodiscard]] const std::set<uint64_t>& all() const { return directories_; }

 private:
  bool known_ = false;
  std::set<uint64_t> directories_;
};

}  // namespace weir::mds
