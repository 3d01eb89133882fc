// FileLeases: which mounts may remember of a file what they read, or buffer what they write.
//
// A session that has a file open, or has looked at it, holds a read lease: nobody else changes data
// or attributes without asking it back, nor, of a directory, names. The only session that has it
// open, and for writing, holds a write lease: nobody else even looks before what is buffered has
// been stored and reported. As soon as a second one is there, writers write through and report
// before they are answered. A file whose leases were in somebody's way rests for a while: then no
// session may remember anything of it, but whoever has it open is still told of each change, to
// drop what its processes have mapped. After the rest, leases come with any answer again.
//
// A look gives no lease while others have the file open for writing: each of their writes would
// have to tell the looker. They ask such leases back when they open it. A directory that others
// change rests until they have left it alone for a while (lease_rest.h). Of what a session has
// looked at and does not have open it holds so much at a time, the fewer, the more sessions there
// are; beyond that the oldest leases are asked back, which nobody waits for.
//
// What is in the way of an operation is asked back by WATCH and given up by YIELD. Whoever is told
// of a change is waited for likewise: a kernel that drops its pages also drops attributes that it
// is just being told, so that it must be done with that before the change is known to have
// happened. A read lease is believed for less than `term` after the last WATCH that was answered,
// so that `term` after a recall nobody holds it, and nobody is told or waited for any longer. A
// write lease ends with YIELD or its session only: Overdue names those to be evicted, once they
// can't be heard any more (and fenced, for they may still hold data).
//
// Threads: any; no callback, no lock of others is taken.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/time.h"
#include "mds/ns/awaited.h"
#include "mds/ns/lease_rest.h"
#include "mds/ns/open_files.h"

namespace weir::mds {

class FileLeases {
 public:
  struct Options {
    Duration term = std::chrono::seconds(2);  // longer than kLeaseTrust of client/vfs/dir_cache.h
    LeaseRest::Bounds rest = {std::chrono::seconds(1), std::chrono::seconds(1)};
    LeaseRest::Bounds directory_rest = {std::chrono::milliseconds(100), std::chrono::seconds(4)};
    Duration patience = std::chrono::seconds(5);  // with a writer that is not heard
    // Not open: of all sessions together, of which each has its part, but no less than that. One
    // takes a quarter of a KiB here.
    size_t looks_most = 1'048'576;
    size_t looks_least = 65'536;
  };
  explicit FileLeases(Clock& clock) : FileLeases(clock, Options()) {}
  FileLeases(Clock& clock, Options options) : clock_(clock), options_(options) {}

  // A mount that understands leases; those it had are gone.
  void Begin(uint64_t session, uint64_t epoch);
  void End(uint64_t session);
  // After a restart: who holds what is not known, so that whatever concerns files waits for `term`.
  void AwaitUnknown();
  [[nodiscard]] bool AwaitsUnknown() const;

  struct Grant {
    uint64_t epoch = 0;
    uint64_t seq = 0;  // recalls up to here are older than the grant
    bool write = false;
    bool look = false;  // of a session that neither had it nor has the file open
  };
  // To a session that has the file open, or looks at it.
  std::optional<Grant> Offer(uint64_t session, uint64_t inode, const OpenFiles& opens);
  // The session comes back after our restart with a file that it may have buffered data of, or
  // makes such a file again: as if it had a write lease. It is asked back at once, for others may
  // have such leases on the file too; nobody waits for it yet.
  void Restore(uint64_t session, uint64_t inode);
  // The session has not been told of that look.
  void Withdraw(uint64_t session, uint64_t inode);
  // The session has it open no more: what it has read of it holds.
  void Closed(uint64_t session, uint64_t inode);
  // The session moves a name, and may have a lease on the directory that it leaves: it is told of
  // the next change where it goes, unless that rests.
  void Moves(uint64_t session, uint64_t from, uint64_t to);
  // The session's reads have moved its access time: others are to ask for it again, which nobody
  // waits for.
  void Read(uint64_t session, uint64_t inode);
  // There is no such inode any more.
  void Gone(uint64_t inode);
  // While OSDs cut off a file only who has leases on it already may remember what is shown of it:
  // how much space it takes follows.
  void BeginCut(uint64_t inode);
  void EndCut(uint64_t inode);
  [[nodiscard]] bool IsBeingCut(uint64_t inode) const;

  struct Verdict {
    bool in_the_way = false;  // leases of others must go first
    bool asked = false;       // somebody must hear of it
  };
  // Whom an operation has told of its changes. Each is told once, whatever he learns later.
  struct Told {
    uint64_t session = 0;
    uint64_t inode = 0;
    uint64_t seq = 0;
    TimePoint until;  // is waited for
  };
  struct Wish {
    std::span<const uint64_t> shown = {}, changed = {};
    std::span<const uint64_t> changed_directories = {};
    std::span<const uint64_t> claimed = {};  // will be written to
  };
  // Before `session` does that. Session 0 is nobody's. `told` belongs to the operation, which asks
  // again until nothing is in the way.
  Verdict Ask(uint64_t session, const Wish& wish, std::vector<Told>* told);

  struct Recall {
    uint64_t seq = 0;
    std::vector<uint64_t> inodes;  // of those not obeyed yet that it has not heard
  };
  [[nodiscard]] bool HasRecalls(uint64_t session, uint64_t heard_seq) const;
  [[nodiscard]] Recall RecallsOf(uint64_t session, uint64_t heard_seq) const;
  // Gives up those that were recalled, and has obeyed for them up to `seq`. False: nobody waits.
  bool Yield(uint64_t session, const Grant& as_of, std::span<const uint64_t> inodes);

  void Tick();  // forgets what has ended

  // Sessions whose write lease has been in the way of somebody, who still waits, for longer than
  // `patience`.
  [[nodiscard]] std::vector<uint64_t> Overdue() const;
  // All that wait ask again now: who does not has gone, or wants it no more.
  void BeginRound();
  [[nodiscard]] Duration patience() const { return options_.patience; }

 private:
  enum class Kind : uint8_t { kTold, kRead, kWrite };
  struct Hold {
    Kind kind = Kind::kTold;
    bool open = false;
    uint64_t first_recall = 0;  // not obeyed yet; 0: none
    uint64_t last_recall = 0;
    uint64_t obeyed = 0;
    TimePoint recalled_at;  // the first
    Awaited awaited;        // it is in somebody's way
    bool listed = false;    // in `looks` of its session
    [[nodiscard]] bool recalled() const { return first_recall != 0; }
  };
  struct File {
    std::map<uint64_t, Hold> holds;  // by session
    LeaseRest rest;
  };
  struct Session {
    uint64_t epoch = 0;
    uint64_t seq = 0;
    std::map<uint64_t, uint64_t> recalled;  // not obeyed yet: inode -> seq
    std::unordered_map<uint64_t, Kind> held;
    std::deque<uint64_t> looks;  // oldest first; some are open, or not held any more
  };
  enum class Change : uint8_t { kFile, kDirectory, kClaim };
  [[nodiscard]] bool InTheWay(const Hold& hold) const;
  void AwaitLocked(Hold* hold) const;
  void RecallLocked(uint64_t holder, uint64_t inode, Hold* hold, Verdict* verdict);
  void AskToShowLocked(uint64_t session, uint64_t inode, Verdict* verdict);
  void AskToChangeLocked(uint64_t session, uint64_t inode, Change change, std::vector<Told>* told,
                         Verdict* verdict);
  static void ListLocked(uint64_t inode, Session* session, Hold* hold);
  [[nodiscard]] size_t LooksMaxLocked() const;
  bool HasRoomLocked(uint64_t id, Session* session);
  void DropLocked(uint64_t session, uint64_t inode);

  Clock& clock_;
  const Options options_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Session> sessions_;
  std::unordered_map<uint64_t, File> files_;
  std::unordered_set<uint64_t> being_cut_;
  uint64_t round_ = 1;
  TimePoint unknown_until_;
  TimePoint next_sweep_;
};

}  // namespace weir::mds
