// FileLeases: what this mount may say of files without asking the MDS, and whether it may keep for
// itself for a while what it writes (mds/ns/file_leases.h).
//
// Attributes: a reply of the MDS about a file or directory may bring a lease. Until that is
// recalled the inode's attributes are right, and answered here, as long as the leases are believed
// (kLeaseTrust of dir_cache.h) and no change of ours is over whose reply did not bring them
// (Changed). The names in a directory are right as long, whatever we change there: NamesOf.
// Writes: under a lease for writing they may be buffered and reported later; without one
// they are stored and reported before they are answered. A recall lets no further write begin; when
// those under way are over, what is left is flushed and the lease given up (lease_keeper.h).
//
// A mount that is `alone` has every lease for ever.
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "client/vfs/inode_table.h"
#include "common/base/time.h"

namespace weir::wire {
class EntryReply;
}

namespace weir::client {

class FileLeases {
 public:
  FileLeases(Clock& clock, bool alone) : clock_(clock), alone_(alone) {}
  [[nodiscard]] bool alone() const { return alone_; }

  // A session opened by a request sent at `asked`; nothing of before holds. Returns the files that
  // were written under a lease: they are to be flushed.
  std::vector<InodeId> BeginSession(uint64_t epoch, TimePoint asked);
  // A WATCH that was sent at `asked` has been answered and told of recalls up to `seq`.
  void Renew(uint64_t epoch, uint64_t seq, TimePoint asked);
  [[nodiscard]] uint64_t heard() const;
  [[nodiscard]] uint64_t epoch() const;

  // Taken before a request whose reply brings attributes.
  [[nodiscard]] uint64_t Asked() const { return stamp_.load(std::memory_order_acquire); }
  // What is Asked from now on is no less than that, and what was before is.
  uint64_t Mark() { return ++stamp_; }
  // After the inode has taken the attributes of the reply.
  void Learn(const InodePtr& inode, const wire::EntryReply& reply, uint64_t asked);
  // A reply has come that changed the attributes of that inode, or of one that is not known here,
  // and did not bring them.
  void Changed(Inode* inode);
  void Changed();
  // Whether the attributes of the inode are what the MDS would answer.
  [[nodiscard]] bool MayAnswer(const Inode& inode) const;
  // The lease under which what the MDS now says of names in that directory holds; 0: none.
  [[nodiscard]] uint64_t NamesOf(const Inode& directory) const;
  // How long all this is believed from now on, if no news comes.
  [[nodiscard]] Duration Trust() const;

  // A write may be reported later; EndWrite follows. False: before it is answered.
  bool BeginWrite(InodeId inode);
  void EndWrite(InodeId inode);
  // It has been made under that lease: no other mount has ever looked at it.
  [[nodiscard]] bool IsUnseen(InodeId inode) const;
  // Nothing more may be answered or written under the lease. True: it was one for writing.
  bool Revoke(const InodePtr& inode);
  // With the last close the MDS takes that back. In between no answer allows it again: what the
  // MDS said before it heard of the close holds no longer.
  void BeginRelease(InodeId inode);
  void EndRelease(InodeId inode);
  // Runs `quiet` when all writes that were begun are over. After Revoke.
  void WhenQuiet(InodeId inode, std::function<void()> quiet);

 private:
  struct Writing {
    bool allowed = false;
    bool unseen = false;
    bool releasing = false;
    uint32_t under_way = 0;
    std::vector<std::function<void()>> quiet;
    [[nodiscard]] bool IsOver() const { return !allowed && !releasing && under_way == 0; }
  };

  static bool Forbid(Writing* writing);
  bool StopWritingLocked(InodeId inode);

  Clock& clock_;
  const bool alone_;
  std::atomic<uint64_t> stamp_{1};
  std::atomic<uint64_t> floor_{1};     // what was asked earlier is worth nothing
  std::atomic<uint64_t> no_lease_{0};  // up to there they are of sessions before
  std::atomic<int64_t> trusted_until_{0};
  mutable std::mutex mutex_;
  uint64_t epoch_ = 0;
  uint64_t seq_ = 0;
  uint64_t last_lease_ = 0;
  std::unordered_map<InodeId, Writing> writing_;
};

}  // namespace weir::client
