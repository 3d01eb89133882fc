// DirCache: what this mount may say of directories without asking the MDS.
//
// The MDS gives a lease on a directory with a look at it or with its mkdir: until it asks the lease
// back by WATCH nobody else changes the names in it, its mode or its owner (mds/ns/dir_leases.h).
// Under one we remember where names lead that were looked up or moved here and, of a directory that
// was empty when the lease came, every name that this mount has added since: what is not among them
// does not exist. What the kernel remembers of names is kernel_names.h's, so that giving a lease
// back needs no word with it.
//
// A lease is believed for kLeaseTrust after a WATCH was sent that has been answered. Replies
// overtake each other: what a reply tells of a directory counts only if no change of ours there was
// under way while it was.
//
// Memory:  bounded by Limits, beyond which it forgets, or learns no more.
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/vfs/file_attr.h"
#include "common/base/time.h"

namespace weir::wire {
class Caller;
class DirLease;
class EntryReply;
}  // namespace weir::wire

namespace weir::client {

// Well below the `term` of mds/ns/dir_leases.h.
inline constexpr Duration kLeaseTrust = std::chrono::milliseconds(1500);

class DirCache {
 public:
  struct Limits {
    size_t directories = 16'384;
    size_t learned = size_t{1} << 20;  // names that lead to a known inode, some 110 bytes each
    size_t present = size_t{1} << 21;  // in directories all of whose names are known, 40 each
  };
  explicit DirCache(Clock& clock) : DirCache(clock, Limits()) {}
  DirCache(Clock& clock, Limits limits) : clock_(clock), limits_(limits) {}

  // A session opened by a request sent at `asked`; epoch 0: without leases.
  void BeginSession(uint64_t epoch, TimePoint asked);
  // A mount that nobody shares has every lease for ever, of what it has made itself.
  void BeginAlone();
  // The answer to a WATCH sent at `asked`. After it obeyed() is what the next WATCH says.
  void Renew(uint64_t epoch, uint64_t seq, const std::vector<InodeId>& recalled, TimePoint asked);
  [[nodiscard]] uint64_t obeyed() const;
  [[nodiscard]] TimePoint Now() const { return clock_.Now(); }

  struct Look {
    enum class Kind : uint8_t { kAskMds, kAbsent, kDirectory, kOther } kind = Kind::kAskMds;
    FileAttr attr;  // of the directory; its times and size may be old
    InodeId other;  // of which nothing more is known here
  };
  Look Find(InodeId parent, std::string_view name, const wire::Caller& caller) const;

  // Held while a LOOKUP, READDIR, MKNOD or CREATE is on its way.
  class Asking;
  std::shared_ptr<Asking> Ask(InodeId parent);
  void Learn(const Asking& asking, std::string_view name, const wire::EntryReply& reply);

  // Of a mount that nobody shares: the directory was made by that.
  void LearnMade(const Asking& asking, std::string_view name, wire::EntryReply reply);

  // Whether it is time to ask for a lease on a directory that nobody looks up any more: the root,
  // somebody's working directory. Yes at most once in kWantInterval. `lacks`: another one than
  // those kept here.
  bool Wants(InodeId directory, bool lacks = false);

  // Whether a change of this mount is on its way there.
  [[nodiscard]] bool IsChanging(InodeId directory) const;
  // Of names in it.
  [[nodiscard]] bool NamesAreChanging(InodeId directory) const;
  // Held while a change of this mount is on its way.
  enum class Kind : uint8_t { kAdd, kRemove, kRights };
  struct Change {
    Kind kind;
    InodeId directory;
    std::string_view name;  // not of kRights
  };
  class Changing;
  std::shared_ptr<Changing> BeginChange(std::initializer_list<Change> changes);
  static std::vector<InodeId> DirectoriesOf(const Changing& changing);
  // Before End: that was a rename, and the file has this name now.
  void LearnMoved(const Changing& changing, InodeId directory, std::string_view name, InodeId file);
  // Before it is destroyed: it has been answered.
  void End(Changing* changing);

 private:
  static constexpr size_t kKinds = 3;
  struct Directory {
    uint64_t lease = 0;  // counts leases, so that a new one differs from the old
    FileAttr attr;
    bool complete = false;               // what is in neither of these does not exist
    std::unordered_set<size_t> present;  // hashes
    std::unordered_map<std::string, InodeId> directories;
    std::unordered_map<std::string, InodeId> others;
  };
  // Changes of one directory, kept as long as a reply may depend on them.
  struct Activity {
    uint32_t under_way[kKinds] = {};
    uint64_t last[kKinds] = {};
  };
  void EndAsk();
  void EndChange(const std::vector<std::pair<Kind, InodeId>>& changes);
  [[nodiscard]] bool QuietLocked(InodeId directory, Kind kind, uint64_t since) const;
  [[nodiscard]] bool AloneRemovesLocked(const Changing& changing, InodeId directory) const;
  void TakeLeaseLocked(const FileAttr& attr, const wire::DirLease& lease, uint64_t asked_at);
  void NoteChangeLocked(const Change& change);
  void DropLocked(InodeId directory);
  void ClearLocked();

  Clock& clock_;
  const Limits limits_;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> epoch_{0};
  bool alone_ = false;
  uint64_t seq_ = 0;
  TimePoint trusted_until_;
  uint64_t sequence_ = 0;  // of our changes
  uint64_t last_lease_ = 0;
  size_t asking_ = 0;
  size_t learned_ = 0, present_ = 0;  // names, of all directories
  std::unordered_map<InodeId, Directory> directories_;
  std::unordered_map<InodeId, Activity> activity_;
  std::unordered_map<InodeId, TimePoint> wanted_;  // when it was last asked for
};

}  // namespace weir::client
