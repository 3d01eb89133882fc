// Scheduler: which request the device sees next. The whole QoS pipeline of one device,
//
//   class queues ─► guarantee (HTB) ─► surplus (FCFS | DSFQ | VD | pass) ─► dispatch (FIFO | C-SCAN
//   | VC | CVC) ─► depth D
//
// as one passive object: it owns no thread, lock, I/O or clock, so that the daemon and the
// simulator run the very same code. Source: shared pipeline of AQuA §5 (ODIS queues, HTB, C-SCAN,
// maximizer) and DSFQ §3 (start tags with delay); README.md beside this file explains each box.
//
// Units:   cost in tokens of 1 KiB (AQuA §5.2: at least one per request) unless the config says
//          requests (token buckets count KiB always); rates in bytes per second; times monotonic,
//          passed in, never going backwards.
// Threads: not thread-safe; one owner, who holds one lock or one strand.
// Ownership: requests belong to the caller, who keeps them alive from Enqueue to Completed/Cancel.
// Use:     after Enqueue, Completed, Cancel, Tick, Configure, SetClass, RemoveClass and at wake_at:
//          Pull until it returns no request.
// Order:   fair between the flows of a class, FIFO within each, up to the dispatch window, inside
// of
//          which C-SCAN may reorder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/time.h"
#include "common/qos/class_times.h"
#include "common/qos/flow_order.h"
#include "common/qos/qos_config.h"
#include "osd/qos/control/disk_estimate.h"
#include "osd/qos/decision_recorder.h"

namespace weir::osd::qos {

enum class OpKind : uint8_t { kRead, kWrite, kOther };

// A line of memory as caches move it.
inline constexpr size_t kCacheLine = 64;

// Writes of so many bytes and more land before they are complete, see Scheduler::Landed; smaller
// ones may go with their commit.
inline constexpr uint64_t kLandingBytes = 32 << 10;

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
  bool in_hurry = false;    // went to the device while somebody was, and its reads are near
  enum class Turn : uint8_t { kNone, kRead, kLanding, kBurst };
  Turn turn = Turn::kNone;  // what it is for Bursts
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

// What Pull decided.
struct PullResult {
  Request* request = nullptr;        // to be submitted now, or none
  std::optional<TimePoint> wake_at;  // with no request: when to pull again at the latest, if ever
};

struct ClassCounters {
  ClassId id;
  uint64_t served_ops = 0;
  uint64_t served_bytes = 0;
  uint64_t guaranteed_bytes = 0;
  uint64_t surplus_bytes = 0;
  uint64_t arrived_bytes = 0;
  uint64_t queued_ops = 0;
  uint64_t queued_bytes = 0;
  uint64_t deadline_misses = 0;  // completed later than the class's latency bound
  // Seconds with demand in which served < promise - 2 %, or the bound was missed too often.
  uint64_t violation_seconds = 0;
  OsdClassTimes times;  // without operations and bytes, which are above
};

struct ServiceReport;

class Scheduler {
 public:
  // Starts with class 0 and no request. The recorder, if there is one, outlives it.
  Scheduler(const SchedulerConfig& config, TimePoint now, DecisionRecorder* recorder = nullptr);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Boxes and rates change on a running scheduler: queued requests stay, in order, and are tagged
  // anew by the boxes that need it; requests on the device are untouched.
  void Configure(const SchedulerConfig& config, TimePoint now);
  // Installs or replaces a class. Its queue and tags survive a change of weight, limit or
  // reservation.
  void SetClass(const ClassSpec& spec, TimePoint now);
  // Removes a class; what it had queued goes to class 0 in arrival order (AQuA: expired or
  // released).
  void RemoveClass(ClassId id, TimePoint now);

  void Enqueue(Request* request, TimePoint now);
  // Next request for the device, at most `depth` at a time between Pull and Landed or Completed.
  PullResult Pull(TimePoint now);
  // The device has done its part for a request that is not complete yet (a write whose data is
  // where it belongs waits for a commit that it shares with others): its slot is free, and what was
  // measured until now is the device's time. Optional, at most once, before Completed; then Pull.
  void Landed(Request* request, TimePoint now);
  void Completed(Request* request, TimePoint now);
  // Takes a queued request out (its client is gone). False when it is already on the device.
  bool Cancel(Request* request, TimePoint now);

  // Control loops (bandwidth maximizer, expiry, violation accounting). Call when due.
  void Tick(TimePoint now);
  [[nodiscard]] TimePoint NextTick() const;

  [[nodiscard]] std::vector<ClassCounters> Counters(TimePoint now);
  // What was measured of the service, for admission by measurement.
  [[nodiscard]] ServiceReport Measures() const;
  // What the disk gives, and whether that is less than was promised of it.
  [[nodiscard]] DiskEstimate::View Disk() const;
  // What admission has booked of this disk, by which Disk judges too.
  void SetBooked(uint64_t bytes_per_s);
  // So many bytes went to the device past the queues.
  void DoneOutside(uint64_t bytes);
  // How long somebody on this machine has waited for a processor, since whenever: wanted by then
  // (Max: it does not matter), or never where nobody counts (control/processor_pace.h).
  [[nodiscard]] TimePoint LookAtProcessors() const;
  void ProcessorsWaited(Duration total, TimePoint now);
  // Bytes per second to which surplus is held so that processors are free for a class with a
  // latency bound; 0: it is not.
  [[nodiscard]] uint64_t pace(TimePoint now) const;
  // The root rate G now, which the maximizer may have raised above the configured G0.
  [[nodiscard]] uint64_t token_rate() const;
  // Pieces in which large device writes should be issued now, one after the other, so that a small
  // request of a class in a hurry is not stuck behind one; UINT64_MAX: whole.
  [[nodiscard]] uint64_t ChunkBytes(TimePoint now) const;
  // Device time that a request is expected to take; 0: nothing known yet.
  [[nodiscard]] Duration ServiceEstimate(OpKind op, uint64_t bytes) const;
  [[nodiscard]] uint64_t queued() const;
  [[nodiscard]] uint64_t in_flight() const;
  // Whether the depth would let one more onto the device.
  [[nodiscard]] bool HasFreeSlot(TimePoint now);
  // Whether a large write of which only the commit is left should leave its slot (Landed). While
  // rates hold requests back: always. While somebody is in a hurry and the device is the limit:
  // within a burst (control/bursts.h), or up to 2 ms of its time, so that writes share flushes;
  // each with its own would be served between the reads, one by one. Else never: the device may
  // keep in a cache what has landed, and be as busy as ever until the flush that the commit asks
  // for.
  [[nodiscard]] bool LandingFrees(TimePoint now) const;
  // How long the commit of that request may wait for others to share its flush, if it is one of a
  // burst (control/bursts.h); what has just landed is asked for again.
  [[nodiscard]] std::optional<Duration> BurstPatience(const Request& request) const;
  // Whether somebody waits for each small request while the device works for others.
  [[nodiscard]] bool InHurry(TimePoint now) const;
  // The same, and its class has a latency bound.
  [[nodiscard]] bool BoundInHurry(TimePoint now) const;

 private:
  void Note(const Decision& decision) const {
    if (recorder_ != nullptr) recorder_->Note(decision);
  }

  class Impl;
  std::unique_ptr<Impl> impl_;
  DecisionRecorder* recorder_;
};

}  // namespace weir::osd::qos
