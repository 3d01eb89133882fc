// DirLeases: which mounts may answer looks into a directory by themselves.
//
// A lease on a directory says: nobody but the holder changes its names, or who may pass through it,
// without asking the lease back first. Any number of mounts hold one at a time. An operation that
// is in the way of others' leases waits until they have obeyed the recall, or can hold no more: a
// holder believes in its leases for less than `term` after it sent the last WATCH that was
// answered, and an answer after the recall brings the recall along. So `term` after a recall nobody
// holds the lease, whether he has heard of it or not. A directory that was recalled rests for a
// while (lease_rest.h): mounts that take turns there would pay for leases with every change.
//
// The right to append to a file is kept here too. One mount has it at a time, it knows no rest, and
// obeying its recall takes as long as writing what was appended: it is over when the mount gives it
// back, or after `append_term`.
//
// Threads: any; no callback, no lock of others is taken.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/time.h"
#include "mds/ns/lease_rest.h"

namespace weir::mds {

class DirLeases {
 public:
  struct Options {
    Duration term = std::chrono::seconds(2);  // longer than kLeaseTrust of client/vfs/dir_cache.h
    LeaseRest::Bounds rest = {std::chrono::milliseconds(100), std::chrono::seconds(4)};
    Duration append_term = std::chrono::seconds(30);
    size_t per_session_max = 20'000;
  };
  explicit DirLeases(Clock& clock) : DirLeases(clock, Options()) {}
  DirLeases(Clock& clock, Options options) : clock_(clock), options_(options) {}

  // A mount that understands leases; those it had are gone. Returns the epoch of what it gets.
  uint64_t Begin(uint64_t session);
  void End(uint64_t session);
  // After a restart: who holds what is not known, so that every change waits for `term`.
  void AwaitUnknown();

  struct Grant {
    uint64_t epoch = 0;
    uint64_t seq = 0;  // recalls up to here are older than the grant
  };
  std::optional<Grant> TryGrant(uint64_t session, uint64_t directory);
  // The right to append to a file that nobody else has one for, see InTheWay. 0: the session does
  // not obey recalls. What is given back late is not mistaken for a newer one.
  uint64_t GrantAppend(uint64_t session, uint64_t file);
  void GiveBackAppend(uint64_t session, uint64_t file, uint64_t grant);
  // Whether somebody else has that right; asks for it back. What a restart forgot is not waited
  // for.
  bool AppendInTheWay(uint64_t session, uint64_t file);
  // Whether others hold one of them; asks for those back.
  bool InTheWay(uint64_t session, const std::vector<uint64_t>& directories);

  struct Recall {
    uint64_t epoch = 0;
    uint64_t seq = 0;
    std::vector<uint64_t> directories;  // of all recalls not obeyed yet
    std::vector<uint64_t> appends;
  };
  [[nodiscard]] bool HasRecalls(uint64_t session, uint64_t obeyed_seq) const;
  [[nodiscard]] Recall RecallsOf(uint64_t session) const;
  // False: that was known.
  bool Obeyed(uint64_t session, uint64_t seq);
  void Tick();  // forgets what has ended

  // Whether the store knows that there were leases; a restart must know it.
  [[nodiscard]] bool recorded() const;
  void set_recorded(bool recorded);

 private:
  struct Recalled {
    uint64_t seq;
    uint64_t directory;
    bool append;
  };
  struct Holder {
    uint64_t epoch = 0;
    uint64_t seq = 0;
    uint64_t obeyed = 0;
    std::vector<Recalled> recalled;  // and not obeyed
    std::unordered_set<uint64_t> held;
  };
  struct Lease {
    uint64_t append_grant = 0;                        // of a right to append
    std::unordered_map<uint64_t, TimePoint> gone_at;  // by session; Max: not recalled
    LeaseRest rest;
  };
  void RecallLocked(uint64_t session, uint64_t directory);
  void DropLocked(uint64_t session, uint64_t directory);

  Clock& clock_;
  const Options options_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Holder> holders_;
  std::unordered_map<uint64_t, Lease> leases_;
  uint64_t last_grant_ = 0;
  TimePoint unknown_until_;
  TimePoint next_sweep_;
  bool recorded_ = false;
};

}  // namespace weir::mds
