// LimitParts: keeps a mount's parts of the limits over several OSDs: ten times a second while it
// uses such a class, it tells the MDS what they were used for, and obeys the answer
// (common/qos/limit_share.h).
//
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>

#include "client/remote/object_io.h"
#include "common/base/time.h"
#include "common/qos/limit_share.h"
#include "common/wire/mds.pb.h"

namespace weir::client {

class LimitParts {
 public:
  using OnReply = std::function<void(Result<wire::DivideLimitsReply>)>;
  using Ask = std::function<void(const wire::DivideLimitsRequest& request, OnReply on_reply)>;
  // `above`: LimitShare. Clock, `objects` and whatever `ask` needs outlive it and its calls.
  LimitParts(Clock& clock, ObjectIo& objects, Ask ask, uint64_t above)
      : clock_(clock), objects_(objects), ask_(std::move(ask)), share_(above) {}

  // Something waits for such a limit. True: there is something to tell at once, with a Poll. May be
  // called under the lock of `objects`.
  bool Wanted();
  // Tells what is due, and obeys what has run out; says when the next is due, Max for not before
  // something is Wanted.
  TimePoint Poll();

 private:
  bool Tell();  // whether more is to be told later
  void Heard(uint64_t number, const Result<wire::DivideLimitsReply>& reply);
  void Obey();

  Clock& clock_;
  ObjectIo& objects_;
  const Ask ask_;
  std::mutex mutex_;  // what follows; not held over calls
  LimitShare share_;
  std::set<ClassId> classes_;             // told of last
  TimePoint tell_at_ = TimePoint::Max();  // Max: nothing is to be told before something is Wanted
  bool wanted_ = false;                   // since the last Poll began
  uint64_t asking_ = 0;                   // the request that is not answered yet; 0: none
  uint64_t obeyed_ = 0;                   // so many times: the order of what is obeyed
};

}  // namespace weir::client
