// LockService: the lock requests of mounts, answered from a LockTable, across restarts of the MDS.
//
// Locks are in memory. What is durable, before a mount's first lock is granted, is that it may have
// some: after a restart nobody gets a new lock until all such mounts have told which they hold, or
// until the time of grace is over. Who comes too late, or was silent for its lease and so lost its
// locks to others, hears which files that concerns.
//
// Who would be refused for a lock that is held may have seen its file closed a moment ago, of which
// the holder's mount hears a little later: so that one is asked first (see README.md).
//
// Threads: any. Answers run with no lock held, on the thread whose request brought them about.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "mds/locks/lock_table.h"

namespace weir::wire {
class FileLock;
class LockReply;
class LockRequest;
}  // namespace weir::wire

namespace weir::mds {

class NamespaceDb;

class LockService {
 public:
  using Respond = std::function<void(const Status&, const wire::LockReply&)>;

  struct Callbacks {
    std::function<void()> ask;  // somebody has something to hear by WATCH; see AskedOf
    // Whether EndSession of it is to come. Who has ended gets nothing that he still waited for: it
    // is dropped without an answer. Asked under the lock.
    std::function<bool(uint64_t session)> lives;
  };
  // `holders`: sessions that may have locks from before this start.
  LockService(NamespaceDb& names, Clock& clock, const std::vector<uint64_t>& holders,
              Callbacks callbacks);

  void Lock(uint64_t session, const wire::LockRequest& request, Respond respond);
  void Wait(uint64_t session, uint64_t ticket, const Respond& respond);
  void Cancel(uint64_t session, uint64_t ticket);
  void Test(uint64_t session, const wire::LockRequest& request, Respond respond);

  // The session tells what it holds from before our restart, or its own (`resumes`); returns what
  // of that it has lost. What it holds here it keeps, however late: it has told before, and not
  // heard the answer, or was granted it since.
  std::vector<wire::FileLock> Reclaim(uint64_t session, const std::vector<wire::FileLock>& locks,
                                      bool resumes = false);
  // The session can say when what was closed there has been unlocked.
  void CanSettle(uint64_t session);
  // Up to which it is asked to say so. Any thread's, also under locks.
  [[nodiscard]] uint64_t AskedOf(uint64_t session) const;
  // It has, as of when it was asked `seq`.
  void Settled(uint64_t session, uint64_t seq);
  void EndSession(uint64_t session);
  void EndGrace();
  void Tick();  // who does not say so is not waited for any longer

 private:
  using Work = std::function<void()>;
  void RunParked();
  void LockWhenRecorded(uint64_t session, Work work, const Respond& respond);
  void Recorded(uint64_t session, const Status& status);
  // Sessions that were asked because of a request.
  using Asked = std::set<uint64_t>;
  void SetNow(const LockWish& wish, const Respond& respond, Asked asked);
  void TestNow(const LockWish& wish, const Respond& respond, Asked asked);
  // Whether the holder of what is in the way is asked first; `again` runs when it has answered.
  bool DoubtsLocked(const LockWish& wish, Asked* asked, const std::function<Work()>& again);
  struct Doubt {
    uint64_t seq = 0;
    TimePoint until;
    Work again;
  };
  struct Settler {
    uint64_t asked = 0;
    std::deque<Doubt> doubts;  // in order
  };

  NamespaceDb& names_;
  Clock& clock_;
  const Callbacks callbacks_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Settler> settlers_;
  LockTable table_;
  std::set<uint64_t> awaited_;  // holders of before who have not come back
  std::vector<Work> parked_;    // until nobody is awaited
  std::set<uint64_t> recorded_;
  struct Recording {
    Work work;
    Respond respond;
  };
  std::map<uint64_t, std::vector<Recording>> recording_;
};

}  // namespace weir::mds
