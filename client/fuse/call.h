// Call: one request of the kernel, answered exactly once whatever races to answer it. Calls: those
// not yet answered, so that a killed process need not wait for a lost peer.
//
// The kernel tells of any signal with an interrupt; only a process that is being killed is answered
// EINTR, for reads and writes of regular files are not restartable. What of its operation is not on
// its way yet is abandoned, the rest goes on unseen. A FLUSH comes from a process that is dead
// already too, whom the kernel interrupts no more: it would wait for all that was written.
// Threads: any. A reply function says whether the kernel took it; when not, the caller undoes what
// the reply would have handed out.
#pragma once

#include <fcntl.h>
#include <sys/uio.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/data/object_reader.h"
#include "client/fuse/early_interrupts.h"
#include "client/fuse/fuse_api.h"
#include "common/base/awake_processors.h"
#include "common/base/time.h"

namespace weir::client {

class Calls;

class Call {
 public:
  Call(Calls& calls, fuse_req_t req, AwakeProcessors* awake);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] const fuse_ctx& context() const { return context_; }
  [[nodiscard]] fuse_req_t request() const { return req_; }  // only while the handler runs
  [[nodiscard]] uint64_t number() const { return number_; }  // as the kernel counts
  // `then` runs when a signal interrupts the process, at once if one has; the call may be answered
  // and gone by that time. Once.
  void OnInterrupt(std::function<void()> then);

  bool ReplyErrno(int error);
  bool Reply(const Status& status);  // an error, or plain success
  // Let go when the call is over, answered and all.
  void Hold(std::shared_ptr<void> held) { held_ = std::move(held); }
  // Also answered when the process is on its way out already.
  void SetFlush() { flush_ = true; }
  [[nodiscard]] const std::atomic<bool>& abandoned() const { return abandoned_; }
  bool ReplyEntry(const fuse_entry_param& entry);
  bool ReplyAttr(const struct stat& attr, double timeout);
  bool ReplyRaw(const void* data, size_t size);
  bool ReplySegments(const Segments& segments);
  bool ReplyWrite(size_t size);
  bool ReplyOffset(uint64_t offset);
  bool ReplyStatfs(const struct statvfs& stat);
  bool ReplyReadlink(const std::string& target);
  bool ReplyXattrSize(size_t size);
  bool ReplyLock(const struct flock& lock);

 private:
  friend class Calls;
  bool Claim();  // true for the first who answers
  void TellAwake();

  // How the processors' sleep depends on it.
  enum class Steps : uint8_t { kDoNotMatter, kMatter, kMatterIfQuick };
  static Steps StepsOfThisRequest();

  Calls& calls_;
  AwakeProcessors* const awake_;  // null: nobody is told
  const Steps steps_;
  const TimePoint began_;  // with kMatterIfQuick
  const fuse_req_t req_;
  const fuse_ctx context_;
  const uint64_t number_;
  std::atomic<bool> answered_{false};
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> flush_{false};
  std::shared_ptr<void> held_;
  // Guarded by the mutex of calls_:
  bool seen_ = false;  // by AnswerKilled, which leaves a handler time to end
  bool interrupted_ = false;
  std::function<void()> on_interrupt_;
  std::list<Call*>::iterator place_;
};
using CallPtr = std::shared_ptr<Call>;

// For the layers below.
inline Abandoned AbandonedOf(const CallPtr& call) {
  return {call, &call->abandoned()};
}

class Calls {
 public:
  // `awake`: is told of calls that may wait for other threads more than for disks; null: nobody is.
  explicit Calls(AwakeProcessors* awake) : awake_(awake) {}
  CallPtr Begin(fuse_req_t req);
  // The kernel says that a signal interrupts the process behind that call, which may not have come
  // here yet: another thread has it.
  void Interrupt(uint64_t number);
  // The kernel loses interrupts of requests that were not yet on their way when the signal came, as
  // it does over io_uring: AnswerKilled looks at every process from now on.
  void MistrustInterrupts() { mistrusts_ = true; }
  // Answers those whose process is being killed. False: there was none.
  bool AnswerKilled();
  [[nodiscard]] size_t outstanding() const;

 private:
  friend class Call;
  void Remove(Call* call);
  void InterruptSignalled();

  AwakeProcessors* const awake_;
  std::atomic<bool> mistrusts_{false};
  mutable std::mutex mutex_;
  std::list<Call*> open_;
  EarlyInterrupts early_;
};

}  // namespace weir::client
