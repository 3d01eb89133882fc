// FileLocks: the advisory locks that processes of this mount hold and wait for, kept at the MDS so
// that they hold against other mounts.
//
// A lock that must wait costs no thread: the MDS says so at once and is then asked, under a ticket,
// for the outcome. What is held is remembered here: to be told to an MDS that restarted, to know at
// close whether there is anything to give back, and because only a handle's release ends its OFD
// locks. A lock counts as held from its answer on, and as gone from the moment its end is sent: so
// an MDS never hears of one again that is given up.
//
// Threads: any; callbacks run on RPC threads with no lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/posix/lock_set.h"

namespace google::protobuf {
class MessageLite;
}
namespace weir::wire {
class FileLock;
class LockReply;
}  // namespace weir::wire

namespace weir::client {

// What a process asks for. `owner` is as its kernel names it.
struct LockAsk {
  InodeId inode;
  uint64_t handle = 0;
  bool flock = false;
  enum class Type : uint8_t { kNone, kRead, kWrite } type = Type::kNone;
  uint64_t first = 0;
  uint64_t last = FileLock::kLastByte;
  uint64_t owner = 0;
  uint32_t pid = 0;
  bool wait = false;
};
// What asks for a lock that is held; without the handle.
LockAsk AskFor(InodeId inode, bool flock, const FileLock& held);

class FileLocks {
 public:
  using Reply = std::function<void(Result<wire::LockReply>)>;
  // To the MDS; must not give up before an answer or the end of the mount.
  using Send = std::function<void(uint32_t method, const google::protobuf::MessageLite& request,
                                  bool idempotent, Reply reply)>;
  // Is told of each lock before whoever asked for it hears of it, and of its end (type kNone) when
  // that is certain.
  using Note = std::function<void(const LockAsk& ask)>;
  explicit FileLocks(Send send, Note note = nullptr, uint64_t tickets_above = 0)
      : send_(std::move(send)), note_(std::move(note)), last_ticket_(tickets_above) {}
  // What a predecessor of this process holds.
  void Restore(const std::vector<LockAsk>& held);

  // errno: 0, EAGAIN, EDEADLK, EINTR when it was cancelled, or of the request's failure.
  using Done = std::function<void(int error)>;
  // Of a lock to be set, which may be cancelled from here on.
  uint64_t NewTicket();
  // Ends a lock as well; then no ticket is needed.
  void Set(const LockAsk& ask, uint64_t ticket, Done done);
  // The process would rather not wait; Set's outcome tells whether it has the lock all the same.
  void Cancel(uint64_t ticket);
  // What is in the way: type kNone when nothing is.
  void Test(const LockAsk& ask, std::function<void(Result<LockAsk>)> done);

  // Whether that owner has locks on bytes of it.
  [[nodiscard]] bool HasLocks(InodeId inode, uint64_t owner) const;
  // A process closes the file: its locks on bytes go. Done runs at once when it has none.
  void Closed(InodeId inode, uint64_t owner, const std::function<void()>& done);
  // The last descriptor of a handle is closed: what was locked through it goes.
  void Released(InodeId inode, uint64_t handle);

  // Held by what may end locks when it is over: a close under way, or I/O of a file with locks,
  // until whose end the kernel does not say that the file is closed.
  [[nodiscard]] std::shared_ptr<void> Ending() const;
  // When what holds that now is over, and the MDS has been told of the locks that went.
  void WhenEnded(std::function<void()> then);

  [[nodiscard]] bool Any() const;
  [[nodiscard]] std::vector<wire::FileLock> Held() const;
  // The same, for an MDS that is to say which of them are lost: Lost is about the last of these.
  std::vector<wire::FileLock> ToTell();
  // The MDS gave it to others meanwhile: it is gone, but for what was granted since it was told.
  // The handles through which its owner took it, of other files as well.
  std::vector<uint64_t> Lost(const wire::FileLock& told);

 private:
  struct Pending {
    LockAsk ask;
    Done done;
    bool cancelled = false;
  };
  struct File {
    LockSet ranges;
    LockSet whole;
    LockSet& Of(bool flock) { return flock ? whole : ranges; }
  };
  // Of what is handed out between two calls of WhenEnded; holds those that come later.
  struct Gate {
    std::function<void()> open;
    std::shared_ptr<Gate> next;
    ~Gate() {
      if (open) open();
    }
  };
  void SendLock(uint64_t ticket, const LockAsk& ask);
  void SendWait(uint64_t ticket);
  void SendCancel(uint64_t ticket);
  void OnReply(uint64_t ticket, const Result<wire::LockReply>& reply);
  void Finish(uint64_t ticket, int error);
  void ClearLocked(const LockAsk& ask);
  [[nodiscard]] std::vector<wire::FileLock> HeldLocked() const;
  void Unlock(const LockAsk& ask, Done done);
  void DropOwner(InodeId inode, uint64_t owner, bool flock, Done done);

  const Send send_;
  const Note note_;  // may be empty
  mutable std::mutex mutex_;
  uint64_t last_ticket_;
  std::unordered_map<uint64_t, Pending> pending_;
  std::unordered_map<InodeId, File> files_;
  std::unordered_map<InodeId, File> granted_;  // of those, since the last ToTell
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::map<uint64_t, std::set<std::pair<uint64_t, bool>>> owners_of_;  // handle -> owner, flock
};

}  // namespace weir::client
