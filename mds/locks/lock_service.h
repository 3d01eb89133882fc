// LockService: the lock requests of mounts, answered from a LockTable, across restarts of the MDS.
//
// Locks are in memory. What is durable, before a mount's first lock is granted, is that it may have
// some: after a restart nobody gets a new lock until all such mounts have told which they hold, or
// until the time of grace is over. Who comes too late, or was silent for its lease and so lost its
// locks to others, hears which files that concerns.
//
// Threads: any. Answers run with no lock held, on the thread whose request brought them about.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "common/base/result.h"
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

  // `holders`: sessions that may have locks from before this start.
  LockService(NamespaceDb& names, const std::vector<uint64_t>& holders);

  void Lock(uint64_t session, const wire::LockRequest& request, Respond respond);
  void Wait(uint64_t session, uint64_t ticket, const Respond& respond);
  void Cancel(uint64_t session, uint64_t ticket);
  void Test(uint64_t session, const wire::LockRequest& request, Respond respond);

  // The session tells what it holds from before our restart, or its own (`resumes`); returns the
  // inodes whose locks it has lost.
  std::vector<uint64_t> Reclaim(uint64_t session, const std::vector<wire::FileLock>& locks,
                                bool resumes = false);
  void EndSession(uint64_t session);
  void EndGrace();

 private:
  using Work = std::function<void()>;
  void RunParked();
  void LockWhenRecorded(uint64_t session, Work work, const Respond& respond);
  void Recorded(uint64_t session, const Status& status);
  void SetNow(const LockWish& wish, const Respond& respond);

  NamespaceDb& names_;
  std::mutex mutex_;
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
