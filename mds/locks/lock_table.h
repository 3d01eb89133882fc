// LockTable: who holds and who waits for which advisory lock, of all files and mounts.
//
// A request that must wait has a ticket of its mount's choice, under which the mount asks for the
// outcome and takes the request back. Waiters are served in the order they came whenever a lock
// goes. One whose wait would close a circle of owners that wait for each other is told so; flock
// knows no such thing. An outcome is kept until it has been told once: a mount that asks again
// hears that the ticket is unknown, and sets the lock again, which it has.
//
// Threads: not thread-safe, nothing blocks. Memory only: locks end with the session of their mount,
//          and are reclaimed after a restart (lock_service.h).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/posix/lock_set.h"

namespace weir::mds {

enum class LockVerdict : uint8_t { kGranted, kBusy, kWaiting, kDeadlock, kCancelled, kUnknown };

struct LockWish {
  uint64_t inode = 0;
  bool flock = false;
  FileLock lock;
  bool wait = false;
  uint64_t ticket = 0;
};

class LockTable {
 public:
  using Tell = std::function<void(LockVerdict)>;
  // What others are to be told because of a call; run it without locks.
  using Told = std::vector<std::pair<Tell, LockVerdict>>;

  // kGranted, kBusy, kWaiting or kDeadlock. Granting may let others in: a write lock that becomes a
  // read lock.
  LockVerdict Set(const LockWish& wish, Told* told);
  // Whoever waited for it gets it.
  void Clear(const LockWish& wish, Told* told);
  [[nodiscard]] std::optional<FileLock> Conflict(const LockWish& wish) const;
  // What of a lock, as an owner says that he has it, he has not.
  [[nodiscard]] std::vector<FileLock> Missing(const LockWish& told) const;
  // Tells the outcome when there is one; at once for a ticket that is not known.
  void Await(uint64_t session, uint64_t ticket, Tell tell, Told* told);
  void Cancel(uint64_t session, uint64_t ticket, Told* told);
  void DropSession(uint64_t session, Told* told);

  [[nodiscard]] size_t waiting() const { return waiters_.size(); }
  [[nodiscard]] size_t files() const { return files_.size(); }

 private:
  using Ticket = std::pair<uint64_t, uint64_t>;  // session, number
  struct Waiter {
    LockWish wish;
    LockVerdict outcome = LockVerdict::kWaiting;
    std::vector<Tell> asking;
  };
  struct File {
    LockSet ranges;
    LockSet whole;
    std::list<Ticket> queue;
    [[nodiscard]] const LockSet& Of(bool flock) const { return flock ? whole : ranges; }
    LockSet& Of(bool flock) { return flock ? whole : ranges; }
  };
  void Settle(const Ticket& ticket, LockVerdict outcome, Told* told);
  void ServeQueue(uint64_t inode, Told* told);
  void ForgetIfEmpty(uint64_t inode);
  // Whether who waits for `wish` would wait for himself.
  [[nodiscard]] bool ClosesCircle(const LockWish& wish) const;

  std::unordered_map<uint64_t, File> files_;
  std::map<Ticket, Waiter> waiters_;
  std::multimap<LockOwner, Ticket> waits_of_;  // not of flock, and only while undecided
};

}  // namespace weir::mds
