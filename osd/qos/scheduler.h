// Scheduler: which request the device sees next. The whole QoS pipeline of one device,
//
//   class queues ─► guarantee (HTB) ─► surplus (FCFS | DSFQ | VD | pass) ─► throttles
//                ─► dispatch (FIFO | C-SCAN | VC | CVC) ─► device, depth D
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
//          Pull until it returns no request, if any are queued.
// Order:   fair between the flows of a class, FIFO within each, up to the dispatch window, inside
//          of which C-SCAN may reorder.
// Files:   scheduler.cc holds the path of a request, scheduler_setup.cc what operators change and
//          what timers do; what the device holds is device/, what holds surplus back is throttle.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/qos_config.h"
#include "osd/qos/class_heap.h"
#include "osd/qos/class_queue.h"
#include "osd/qos/control/bandwidth_maximizer.h"
#include "osd/qos/control/contract_meter.h"
#include "osd/qos/control/wait_meter.h"
#include "osd/qos/decision_recorder.h"
#include "osd/qos/device/device.h"
#include "osd/qos/dispatch/dispatch.h"
#include "osd/qos/guarantee/guarantee.h"
#include "osd/qos/guarantee/root_gate.h"
#include "osd/qos/surplus/surplus.h"
#include "osd/qos/throttle.h"

namespace weir::osd::qos {

class Dsfq;

// What Pull decided.
struct PullResult {
  Request* request = nullptr;        // to be submitted now, or none
  std::optional<TimePoint> wake_at;  // with no request: when to pull again at the latest, if ever
  // How long the commit of that request may wait for others to share its flush, if it is one of a
  // burst (device/bursts.h).
  std::optional<Duration> patience;
};

// What whoever starts requests should know, as of now.
struct Advice {
  // Pieces in which large device writes should be issued, one after the other, so that a light
  // request is not stuck behind one; UINT64_MAX: whole.
  uint64_t piece_bytes = UINT64_MAX;
  // Whether the depth would let one more onto the device.
  bool has_slot = true;
  // Whether a large write of which only the commit is left should leave its slot (Landed). While
  // rates hold requests back: always. While the device is kept short: within a burst, or up to 2 ms
  // of its time, so that writes share flushes; each with its own would be served between the reads,
  // one by one. Else never: the device may keep in a cache what has landed, and be as busy as ever
  // until the flush that the commit asks for.
  bool landing_frees = false;
};

struct SchedulerState {
  uint64_t token_rate = 0;  // G now, which the maximizer may have raised above the configured G0
  uint64_t bulk_cap = 0;    // bytes per second that hold bulk back now; 0: none
  uint64_t bulk_taken = 0;  // bytes of bulk that passed since the start, capped or not
  DiskEstimate::View disk;  // what the disk gives, and whether that is less than was promised of it
};

class Scheduler {
 public:
  // Starts with class 0 and no request. The recorder, if there is one, outlives it.
  Scheduler(const SchedulerConfig& config, TimePoint now, DecisionRecorder* recorder = nullptr);
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
  // What admission has booked of this disk, by which State().disk judges too.
  void SetBooked(uint64_t bytes_per_s);
  // The governor's rate for bulk while the device is guarded; 0: none (throttle.h).
  void SetBulkCap(uint64_t bytes_per_s, TimePoint now);

  void Enqueue(Request* request, TimePoint now);
  // Next request for the device, at most `depth` at a time between Pull and Landed or Completed.
  PullResult Pull(TimePoint now);
  // The device has done its part for a request that is not complete yet (a write whose data is
  // where it belongs waits for a commit that it shares with others): its slot is free, and what was
  // measured until now is the device's time. Optional, at most once, before Completed; then Pull.
  // Returns the request's patience, as PullResult has it, anew.
  std::optional<Duration> Landed(Request* request, TimePoint now);
  void Completed(Request* request, TimePoint now);
  // Takes a queued request out (its client is gone). False when it is already on the device.
  bool Cancel(Request* request, TimePoint now);
  // So many bytes went to the device past the queues.
  void DoneOutside(uint64_t bytes);

  // Control loops (bandwidth maximizer, expiry, violation accounting). Call when due.
  void Tick(TimePoint now);
  [[nodiscard]] TimePoint NextTick() const { return std::min(next_second_, next_expiry_); }

  [[nodiscard]] Advice Advise(TimePoint now) const;
  // Until then a class with a latency bound waits for each of its small requests while the device
  // works for others (Device).
  [[nodiscard]] TimePoint guarded_until() const { return device_.guarded_until(); }
  [[nodiscard]] uint64_t queued() const { return queued_; }
  [[nodiscard]] uint64_t in_flight() const { return device_.in_flight(); }
  [[nodiscard]] SchedulerState State(TimePoint now) const;
  [[nodiscard]] std::vector<ClassCounters> Counters(TimePoint now);
  // What was measured of the service, for admission by measurement.
  [[nodiscard]] ServiceReport Measures() const;

 private:
  // Surplus that is decided but not yet on the device: no more bytes than this, or a newcomer waits
  // for all of it. What is owed may always enter the window, or leaves would overflow behind a few
  // large requests of others.
  static constexpr uint64_t kWindowBytes = kLargestRequest;
  static constexpr uint32_t kNumbered = 1 << 16;  // class numbers below are in numbered_

  // Why a request goes: its class is owed it, or it is in turn, or passes others who wait for
  // something that it does not take.
  enum class Grant : uint8_t { kOwed, kSurplus, kFree };

  void Note(const Decision& decision) const {
    if (recorder_ != nullptr) recorder_->Note(decision);
  }

  [[nodiscard]] ClassQueue* Find(ClassId id) const;  // class 0 for an unknown one
  void SetNumbered(ClassId id, ClassQueue* queue);
  // Whose request it is by now: class 0's when its class was removed, even if there is a new one of
  // the same number.
  ClassQueue* OwnerOf(const Request& request);
  [[nodiscard]] bool ReturnsFromIdle(ClassQueue* queue, TimePoint now) const;
  void NoteGone(ClassQueue* queue, TimePoint now);  // one request of it was done or cancelled
  [[nodiscard]] int64_t CostOf(const Request& request) const;
  void CountElsewhere(ClassQueue* queue, Request* request);
  void NoteSize(ClassQueue* queue, int64_t tokens, TimePoint now);
  // Puts the class where its head belongs: nowhere, held by its limit, or before the stages.
  void Place(ClassQueue* queue, TimePoint now);
  void PlaceHead(ClassQueue* queue, TimePoint now);
  void Withdraw(ClassQueue* queue);
  void JoinFlow(ClassQueue* queue, Request* request);

  void FillWindow(bool has_slot, TimePoint now);
  bool ReleaseOne(bool has_room, TimePoint now);
  // A light request, while the class in turn is blocked.
  bool ReleaseLight(TimePoint now);
  void BringForward(ClassQueue* queue, TimePoint now);
  void Release(ClassQueue* queue, Grant grant, TimePoint now);
  Request* Submit(Request* request, TimePoint now);
  // It is about to leave the device: whether that is in time for the promise of its class.
  void NoteSpan(const ClassQueue& queue, const Request& request, TimePoint now);
  // What keeps surplus of that class, whose turn it is, from going now.
  Blocked BlockOf(const ClassQueue& queue, bool has_room, TimePoint now);
  [[nodiscard]] std::optional<TimePoint> WakeAt(TimePoint now) const;
  void StampDeadline(ClassQueue* queue, Request* request, TimePoint now);
  // The next request for the device: in a free slot, or a light one beyond the depth; or none.
  Request* NextForDevice(bool has_slot, TimePoint now);

  [[nodiscard]] bool PassesAll() const { return config_.surplus == SurplusKind::kPass; }
  [[nodiscard]] bool CapHolds(TimePoint now) const {
    return dsfq_ != nullptr && device_.IsGuarded(now);
  }
  [[nodiscard]] DiskEstimate::State DiskLoad(bool has_slot, TimePoint now) const;
  [[nodiscard]] std::unique_ptr<Dispatch> MakeDispatch() const;

  void BuildBoxes(TimePoint now);
  void InstallClass(ClassSpec spec, TimePoint now);
  void SetPromise(ClassQueue* queue, TimePoint now);
  void SetTimeShare(ClassQueue* queue) const;
  void PromiseDisk(ClassQueue* queue) const;
  void CountDisks(TimePoint now);
  [[nodiscard]] double IopsMax() const;
  void SetTransactions(ClassQueue* queue, bool reserved, TimePoint now);
  void SetCeiling(ClassQueue* queue, TimePoint now);
  void ResizeRoot(TimePoint now);
  void RetagAll(TimePoint now);
  void Expire(TimePoint now);
  void CloseSecond(TimePoint now);
  void StepMaximizer(TimePoint now);
  void RebaseTags(TimePoint now);
  [[nodiscard]] bool MaximizerActs() const;

  DecisionRecorder* const recorder_;
  SchedulerConfig config_;
  std::unordered_map<ClassId, std::unique_ptr<ClassQueue>> classes_;
  // The same by number, for Find: [number], as far as numbers are small, which they nearly all are.
  std::vector<ClassQueue*> numbered_;
  // Of removed classes that still have requests on the device.
  std::vector<std::unique_ptr<FlowOrder>> removed_flows_;
  ClassQueue* best_effort_ = nullptr;  // class 0

  ClassHeap<TimePoint, HeapSlot::kCeiling> held_;  // by their limit, until then
  std::unique_ptr<Guarantee> guarantee_;           // none: no guarantee stage
  std::unique_ptr<Surplus> surplus_;
  Dsfq* dsfq_ = nullptr;  // surplus_, when it is that
  RootGate gate_;
  BulkCap bulk_cap_;
  Blocked blocked_;                // the head in turn, by the last Pull
  TimePoint light_blocked_until_;  // one that would have passed it; Max: there is none
  Device device_;
  std::unique_ptr<Dispatch> dispatch_;
  BandwidthMaximizer maximizer_;
  ContractMeter contract_meter_;
  WaitMeter wait_meter_;
  uint64_t booked_ = 0;       // of G0, by all contracts
  size_t virtual_disks_ = 0;  // classes that are one
  double worked_ = 0;         // seconds of the device, in this second

  uint64_t next_sequence_ = 1;
  uint64_t queued_ = 0;
  int64_t largest_tokens_ = 0;
  double total_weight_ = 0;  // of all registered classes

  TimePoint second_start_;
  TimePoint next_second_;
  TimePoint next_expiry_ = TimePoint::Max();
};

}  // namespace weir::osd::qos
