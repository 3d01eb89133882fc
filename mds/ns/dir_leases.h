// DirLeases: which mounts may answer looks into a directory by themselves.
//
// A lease on a directory says: nobody but the holder changes its names, or who may pass through it,
// without asking the lease back first. Any number of mounts hold one at a time. An operation that
// is in the way of others' leases waits until they have obeyed the recall, or can hold no more: a
// holder believes in its leases for less than `term` after it sent the last WATCH that was
// answered, and an answer after the recall brings the recall along. So `term` after a recall nobody
// holds the lease, whether he has heard of it or not. A directory that was recalled rests for a
// while: mounts that take turns there would pay for leases with every change.
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

namespace weir::mds {

class DirLeases {
 public:
  struct Options {
    Duration term = std::chrono::seconds(2);  // longer than kLeaseTrust of client/vfs/dir_cache.h
    Duration rest = std::chrono::seconds(4);  // longer than `term`
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
  // Whether others hold one of them; asks for those back.
  bool InTheWay(uint64_t session, const std::vector<uint64_t>& directories);

  struct Recall {
    uint64_t epoch = 0;
    uint64_t seq = 0;
    std::vector<uint64_t> directories;  // of all recalls not obeyed yet
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
  };
  struct Holder {
    uint64_t epoch = 0;
    uint64_t seq = 0;
    uint64_t obeyed = 0;
    std::vector<Recalled> recalled;  // and not obeyed
    std::unordered_set<uint64_t> held;
  };
  struct Lease {
    std::unordered_map<uint64_t, TimePoint> gone_at;  // by session; Max: not recalled
    TimePoint rests_until;
  };
  void RecallLocked(uint64_t session, uint64_t directory);
  void DropLocked(uint64_t session, uint64_t directory);

  Clock& clock_;
  const Options options_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Holder> holders_;
  std::unordered_map<uint64_t, Lease> leases_;
  TimePoint unknown_until_;
  TimePoint next_sweep_;
  bool recorded_ = false;
};

}  // namespace weir::mds
