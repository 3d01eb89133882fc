// Replays: what mounts were told and a restart may have taken, done again before anybody else does
// anything.
//
// A mount that takes answers before they are durable keeps its changes until they are, and asks for
// them again, in order, of an MDS that has begun anew (MDS_REPLAYED says that it has). Until all
// such mounts have done so, whatever they or others ask about names waits: it could be told what
// was undone, or take a name that was given. A mount that is silent for `patience` is given up: it
// was told what is not so any more, and is to be evicted. What it asked for since comes behind what
// is lost, and is to be refused where it changes what processes see: a crash leaves a prefix.
//
// Whether a session was given up is known until it says that it knows, or goodbye: one that never
// comes back could send again what it had asked for at any time. Only those that are awaited at the
// start can be, so that their number is bounded by that of the mounts then. It is recorded before
// anybody goes on: the next MDS must not take what the session repeats either.
// Threads: any, after Await. HasLost takes no lock: every request asks. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "common/base/time.h"

namespace weir::mds {

class Replays {
 public:
  // `given_up`: its session is, with what it had to repeat.
  using Work = std::function<void(bool given_up)>;
  // `record`: that this session is given up, ahead of all changes that come later; under the lock.
  Replays(Clock& clock, Duration patience, std::function<void(uint64_t session)> record)
      : clock_(clock), patience_(patience), record_(std::move(record)) {}

  // At the start, before anything else: the sessions that may keep something, and those that were
  // given up in a life before and do not know yet.
  void Await(const std::vector<uint64_t>& sessions, const std::vector<uint64_t>& given_up);
  // Something is to be parked.
  [[nodiscard]] bool Any() const { return any_; }
  // Whether that session's replays are due: it has to begin with them.
  [[nodiscard]] bool Awaits(uint64_t session) const;
  // True: `work` of that session is run when nobody is awaited any more. False: nobody is, and it
  // was not taken.
  bool Park(uint64_t session, Work* work);
  // The session has nothing left to repeat: it has repeated all, or knows what it has lost.
  void Done(uint64_t session);
  // If it is awaited: it is no longer, and HasLost what it was to repeat until it is Done.
  void GiveUp(uint64_t session);
  // It was given up and does not know yet: what it asks for, or asks for again, comes behind that.
  [[nodiscard]] bool HasLost(uint64_t session) const;
  // It has said goodbye, and wants nothing any more.
  void Drop(uint64_t session);
  // Those that are not awaited any longer, as they had time enough and are silent: once. `silent`:
  // for how long a session is.
  std::vector<uint64_t> TakeOverdue(const std::function<Duration(uint64_t)>& silent);

 private:
  struct Parked {
    uint64_t session = 0;
    Work work;
    bool given_up = false;
  };
  void GiveUpLocked(uint64_t session);
  void RunIfNone(std::unique_lock<std::mutex> lock);

  Clock& clock_;
  const Duration patience_;
  const std::function<void(uint64_t)> record_;
  mutable std::mutex mutex_;
  std::set<uint64_t> awaited_;
  std::map<uint64_t, std::atomic<bool>> lost_;  // those of Await, for good; set by GiveUpLocked
  std::atomic<bool> any_{false};                // are awaited, or drained
  bool draining_ = false;                       // what was parked runs now
  TimePoint until_;
  std::vector<Parked> parked_;
};

}  // namespace weir::mds
