// Lingering: which inodes that have lost their last name may still be asked for by number.
//
// A mount is told of an inode by a look at its name, and asks for it by number a moment later: to
// open it, to read a link, to look at it once more. If the name has gone meanwhile it must still
// find it, as a local file system's dentry would keep it. So such an inode stays, as an orphan, for
//   - the session that took the name away, which knows what its kernel refers to: until it lets go,
//   - the others, if one of them was told of it lately: for kGrace.
// Others may also have been told by their own mount, under a lease on the directory that had to be
// given back for the change: that counts as told then.
//
// Who was told when is kept by a hash of the inode: two that meet there are taken for one, which
// lets an inode stay in vain. Beyond kMost no more stay for others.
//
// In memory only: after a restart orphans stay until the time of grace is over.
// Threads: under the NamespaceDb lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/time.h"

namespace weir::mds {

class Lingering {
 public:
  static constexpr Duration kGrace = std::chrono::seconds(5);
  static constexpr size_t kMost = 65'536;

  explicit Lingering(Clock& clock) : clock_(clock), told_(kSlots) {}

  // An answer to the session shows the inode.
  void Told(uint64_t session, uint64_t inode) { Note(session, inode); }
  // Others had to give back what let them answer looks into that directory.
  void LeaseTaken(uint64_t directory) { Note(kAnybody, directory ^ kOfLeases); }
  // Whether others may be about to ask for `inode`, whose name in `directory` goes.
  [[nodiscard]] bool OthersKnow(uint64_t session, uint64_t inode, uint64_t directory) const {
    return WasNoted(session, inode) || WasNoted(session, directory ^ kOfLeases);
  }

  void Keep(uint64_t session, uint64_t inode) { kept_[inode] = session; }
  void LetGo(uint64_t session, uint64_t inode) {
    const auto found = kept_.find(inode);
    if (found != kept_.end() && found->second == session) kept_.erase(found);
  }
  // The session keeps these and no others; returns those others.
  std::vector<uint64_t> KeepOnly(uint64_t session, const std::vector<uint64_t>& inodes);
  void Stay(uint64_t inode);  // for kGrace
  [[nodiscard]] bool HasRoom() const { return staying_.size() < kMost; }

  [[nodiscard]] bool Stays(uint64_t inode) const {
    return kept_.contains(inode) || staying_.contains(inode);
  }
  // How many stay that nobody has open: they go soon.
  [[nodiscard]] size_t CountUnopened(const std::function<bool(uint64_t)>& is_open) const;
  // Those whose kGrace is over, so many at most.
  std::vector<uint64_t> TakeDue(size_t most);

 private:
  static constexpr size_t kSlots = 65'536;
  static constexpr uint64_t kAnybody = 0;  // no session
  static constexpr uint64_t kOfLeases = uint64_t{1} << 63;
  struct Slot {
    uint64_t session = 0;            // the last that was told
    TimePoint last = TimePoint();    // when
    TimePoint before = TimePoint();  // the last one of another session
  };
  static size_t IndexOf(uint64_t key) { return (key * 0x9e3779b97f4a7c15U) >> 48; }
  void Note(uint64_t session, uint64_t key);
  [[nodiscard]] bool WasNoted(uint64_t session, uint64_t key) const;
  [[nodiscard]] bool IsLately(TimePoint when) const {
    return when != TimePoint() && clock_.Now() - when < kGrace;
  }

  Clock& clock_;
  std::vector<Slot> told_;
  std::unordered_map<uint64_t, uint64_t> kept_;      // inode -> session
  std::unordered_map<uint64_t, TimePoint> staying_;  // until when
  std::deque<std::pair<TimePoint, uint64_t>> due_;   // of staying_, in order; some stay longer
};

}  // namespace weir::mds
