// DecisionRecorder: hears every call that moves a Scheduler, in their order, with what it was given
// and what a Pull chose. The same calls, made to a fresh Scheduler, choose the same (I-35).
//
// Threads: called by the scheduler's owner, within the call.
#pragma once

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/qos_config.h"

namespace weir::osd::qos {

struct Request;

struct Decision {
  enum class Kind : uint8_t {
    kStart = 1,  // constructed with `config`
    kConfigure,
    kSetClass,
    kRemoveClass,
    kEnqueue,
    kPull,  // `request`: the chosen one, null for none
    kLanded,
    kCompleted,
    kCancel,
    kTick,
    kCounters,
    kSetBooked,    // `amount` bytes per second
    kDoneOutside,  // `amount` bytes
    kSetBulkCap,   // `amount` bytes per second
  };
  Kind kind;
  TimePoint now;  // of kSetBooked and kDoneOutside: not known
  const Request* request = nullptr;
  const SchedulerConfig* config = nullptr;
  const ClassSpec* spec = nullptr;
  ClassId class_id{};  // of kRemoveClass
  uint64_t amount = 0;
};

class DecisionRecorder {
 public:
  virtual ~DecisionRecorder() = default;
  // What it points to lives until this returns. An enqueued request is told before the scheduler
  // has touched it, a completed one as well.
  virtual void Note(const Decision& decision) = 0;
};

}  // namespace weir::osd::qos
