// Request: one object operation as the pipeline sees it, and its way through it.
//
// Ownership: the caller's, from Enqueue to Completed or Cancel. Threads: the scheduler's owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/flow_order.h"

namespace weir::osd::qos {

enum class OpKind : uint8_t { kRead, kWrite, kOther };

// A line of memory as caches move it.
inline constexpr size_t kCacheLine = 64;

// One object operation waiting for, or on, the device. The first block is the caller's; the rest is
// the scheduler's and is readable (for statistics) after Completed.
//
// Of thousands that wait, each is in no cache any more when its turn comes: so four lines and no
// more, by the steps that touch them.
struct alignas(kCacheLine) Request {
  ClassId class_id;          // an unknown class is served as class 0
  uint32_t transaction = 0;  // within the class (ClassSpec::transactions)
  uint64_t bytes = 0;
  uint64_t lba = 0;  // where on the device, in bytes; a stable hash where there is no place yet
  // What this class sent to other OSDs through the same coordinator since its last request to this
  // one (DSFQ eq. 7), in the unit of the cost; the sharing mode of this OSD says how much of it
  // counts.
  int64_t elsewhere = 0;
  void* context = nullptr;  // for the caller
  OpKind op = OpKind::kRead;

  // Surplus `cooperative`: whose virtual clock was charged.
  enum class Account : uint8_t { kNone, kCharged, kSpare };
  Account account = Account::kNone;
  enum class Stage : uint8_t { kOutside, kQueued, kWindow, kDevice };
  Stage stage = Stage::kOutside;
  bool guaranteed = false;  // released by its own tokens or device time, not as surplus
  bool alone = false;       // nobody else was on the device meanwhile, so that this is its own
  bool landed = false;      // the device is done with it, see Scheduler::Landed
  bool kept_short = false;  // went to the device while its depth was, and small reads are near
  enum class Part : uint8_t { kNone, kRead, kLanding, kBurst };
  Part part = Part::kNone;  // of the turns on a disk with a head (device/bursts.h)
  uint64_t sequence = 0;
  Request* next = nullptr;  // links of the class queue or of the window

  Request* previous = nullptr;
  TimePoint arrival;
  TimePoint dispatched;
  Duration held_by_limit{0};   // of its wait: the class stood at its own limit
  TimePoint finish_time;       // by when dispatch `cvc` wants it done; Max: no deadline
  uint64_t goes_first_at = 0;  // dispatch by address: after so many departures
  Duration alone_estimate{0};  // what it was thought to take alone, when it went to the device
  ClassId queue;               // the class queue it was put into
  ClassId payer;               // whose virtual clock was charged

  int64_t cost = 0;
  int64_t elsewhere_tokens = 0;  // the same as `elsewhere` in KiB: paid to the limit with its own
  double v_arrival = 0;          // DSFQ virtual time at arrival
  double start_tag = 0;
  double finish_tag = 0;
  double charge = 0;        // how much of the device's time (in seconds) until it is measured
  Duration device_time{0};  // what it was charged at completion
  uint64_t goes_first_of_promised_at = 0;

  FlowKey flow;             // the caller's: whose it is, within the class
  FlowOrder::Item in_flow;  // its place among those of the class

  static Request* Of(FlowOrder::Item* in_flow) {
    // NOLINTNEXTLINE: it is a member
    return reinterpret_cast<Request*>(reinterpret_cast<char*>(in_flow) -
                                      offsetof(Request, in_flow));
  }
};

// A small request of somebody who has little under way, and waits for it (common/qos/lane.h).
// Nobody waits for each answer of WeirFS's own work.
inline bool IsBackground(ClassId id) {
  return id != kBestEffort && id < kFirstUserClass;
}
inline bool IsLight(const Request& request) {
  return !IsBackground(request.queue) && FlowOrder::IsLight(request.in_flow);
}

}  // namespace weir::osd::qos
