// Dispatcher: the one place where the pure Scheduler meets the clock, the device and a loop.
//
//   Submit ─► Scheduler ─► ObjectStore ─► completion ─► Done
//                 ▲  pump: pull what may start, start it, until nothing may
//
// It belongs to one loop, which also receives the requests and owns the device: an operation is
// decided, started and answered on that thread, without a lock. The store calls back on it, too
// (StoreOptions::loop).
// A small read starts as soon as it is pulled. Everything else that is pulled stands in one line,
// in the order of the pulls; of large writes, which are checked and summed when they start, at most
// kBulkPerTurn bytes start in a turn of the loop, so that it hears of small requests in between.
//
// Units:   bytes, monotonic times of the injected clock.
// Threads: the loop's, except where a call says otherwise.
// Errors:  none of its own; an operation's error goes to its Done.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/qos/flow_meter.h"
#include "common/qos/qos_config.h"
#include "common/reactor/loop.h"
#include "osd/io/latency_histogram.h"
#include "osd/io/object_op.h"
#include "osd/io/rate_meter.h"
#include "osd/io/recent_latency.h"
#include "osd/qos/control/bound_setpoint.h"
#include "osd/qos/control/bulk_governor.h"
#include "osd/qos/scheduler.h"

namespace weir::osd {

struct LatencyQuantiles {
  uint64_t p50_us = 0;
  uint64_t p90_us = 0;
  uint64_t p99_us = 0;
  uint64_t p999_us = 0;
};

struct DispatcherClassStats {
  qos::ClassCounters counters;  // since start or reset, except what is queued now
  uint64_t outside_bytes = 0;   // of those served, what went past the queues (ServeOutside)
  uint64_t p50_us = 0;          // arrival to completion
  uint64_t p90_us = 0;
  uint64_t p99_us = 0;
  uint64_t p999_us = 0;
  LatencyQuantiles recent;                          // of the last 5 to 10 s
  qos::BoundSetpoint::View bound;                   // of one with a latency bound
  std::vector<LatencyHistogram::Filled> latencies;  // all of them, as are the quantiles
  uint64_t latency_sum_us = 0;
  std::string name;  // empty: the class is gone
  std::optional<FlowMeter::Report> flows;
};

struct DispatcherStats {
  uint64_t token_rate = 0;          // G now
  uint64_t base_token_rate = 0;     // G0 as configured
  uint64_t device_bytes_per_s = 0;  // object bytes moved in the last second
  uint64_t bypassed_bytes = 0;      // since start, see SetBypass
  uint64_t pace = 0;                // the bulk cap, bytes per second; 0: none
  bool bulk_let_go = false;         // as it did not free the processors
  Duration alone_p99{0};            // of small reads that had the device to themselves; 0: unknown
  qos::DiskEstimate::View disk;
  Duration window{};  // since start or reset
  std::vector<DispatcherClassStats> classes;
};

// Since the start.
struct DispatcherActivity {
  uint64_t completed = 0;  // requests, background I/O not counted
  Duration full{0};        // in which the device could not take more, and under the strict gate
                           // those in which somebody waited for tokens
};

// What the pipeline counts for an operation.
uint64_t ChargedBytesOf(const ObjectOp& op);

class Dispatcher {
 public:
  // Starts with class 0. The store, the clock and the loop must outlive the Dispatcher.
  Dispatcher(ObjectStore& store, Clock& clock, Loop& loop, const SchedulerConfig& config,
             qos::DecisionRecorder* recorder = nullptr);
  ~Dispatcher();  // Requires: idle, see WhenIdle
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  [[nodiscard]] Loop& loop() const { return loop_; }

  // How long somebody on this machine has waited for a processor, a sum that grows; empty: it is
  // not known any more. Asked by the governor while the device is guarded.
  using Processors = std::function<std::optional<Duration>()>;
  // Before the first operation. Without it processors are taken to be free.
  void WatchProcessors(Processors processors) { processors_ = std::move(processors); }

  // Called in the loop when the device begins to be guarded for a class with a latency bound
  // (osd/qos/device), and when it is no more. Before the first operation.
  void OnGuard(std::function<void(bool guarded)> on_guard) { on_guard_ = std::move(on_guard); }

  // While true each operation that comes starts at once, past the scheduler and every counter but
  // bypassed_bytes. Only to measure what metering costs. Any thread.
  void SetBypass(bool bypass) { bypass_ = bypass; }

  void Submit(std::unique_ptr<ObjectOp> op);
  // Background I/O that may go is over; the operation is gone.
  void Ended(ObjectOp* op);
  // Takes background I/O that still waits out of the queue and counts it as served, outside: it
  // goes now, whatever the scheduler says. The operation is gone. False: the scheduler has let it
  // go, MayGo has been called, and the operation is there until Ended.
  bool ServeOutside(ObjectOp* op);

  // Control loops that are due, and requests whose time has come; the Dispatcher asks its loop for
  // it. Returns when it wants to be called again.
  TimePoint Poll();
  [[nodiscard]] TimePoint NextWake() const;

  // Makes the running scheduler obey a new configuration: what changed, and nothing else, so that
  // buckets and tags of the others go on undisturbed. Classes that are not listed are removed.
  void Apply(const SchedulerConfig& config, const std::vector<ClassSpec>& classes);

  // What admission has booked of the disk.
  void SetBooked(uint64_t bytes_per_s);

  // Counters now; `reset` makes them (and the latencies) start from zero again. With `flows` also
  // of the users and openers of each class, the 32 with the most device time.
  DispatcherStats Stats(bool reset, bool flows = false);
  // Where the time of every class that had I/O went, since start.
  [[nodiscard]] std::map<ClassId, OsdClassTimes> Times();
  [[nodiscard]] DispatcherActivity Activity();
  // What was measured of the service, for admission by measurement.
  [[nodiscard]] qos::ServiceReport Measures();
  // The disk has become slower than promised.
  [[nodiscard]] bool disk_is_slow() const { return disk_is_slow_; }
  // Submitted and not yet answered and accounted.
  [[nodiscard]] uint64_t outstanding() const { return outstanding_; }

  // For a clean end: lifts every limit, so that what is queued goes as fast as the device can.
  void BeginDrain();
  // Runs `idle` once nothing is outstanding; at once, if that is so.
  void WhenIdle(std::function<void()> idle);

 private:
  static constexpr int kBatch = 16;                    // pulled before the first of them starts
  static constexpr uint64_t kBulkPerTurn = 128 << 10;  // bytes of large writes
  static constexpr Duration kLongestPatience = std::chrono::milliseconds(5);

  // Of the clock, and never before a moment that the scheduler was told.
  TimePoint Now();
  // Pulls and starts until nothing may go, and asks for the next Poll. From within itself, as when
  // the store completes inside the call: leaves a note.
  void Pump();
  // A few, of which small reads start at once.
  void PullBatch();
  void StartPulled();
  void ContinueInNextTurn();
  void ArmTimer();
  // Tells the store and the loop what the scheduler advises.
  void Tell(const qos::Advice& advice, TimePoint now);
  void NoteFull(TimePoint now);
  void LetThemWait(const std::vector<ObjectOp*>& pulled, TimePoint now);
  void Start(ObjectOp* op);
  void StartWrite(ObjectOp* op, ObjectStore::WriteDone done);
  void StartDelete(ObjectOp* op);
  void StartExtents(ObjectOp* op);
  void FinishWithNext(ObjectOp* op, ObjectOpResult result);
  Duration Landed(ObjectOp* op);
  void Finish(ObjectOp* op, ObjectOpResult result);
  // It was answered; the scheduler is told.
  void AccountAtTurnEnd();
  void AccountAnswered();
  void AccountOne(ObjectOp& op);
  void Account(const ObjectOp& op, TimePoint when);
  void CountFlow(const ObjectOp& op);
  void Leave();
  // When the scheduler wants a Poll, whatever else happens.
  [[nodiscard]] TimePoint NextTimer() const;
  // The governor looks at the processors, if it is time.
  void Govern(TimePoint now);
  // Tells what a class with a bound waited.
  void NoteWaited(const ObjectOp& op);
  void SetBulkCap(TimePoint now);

  ObjectStore& store_;
  Clock& clock_;
  Loop& loop_;
  Processors processors_;               // may be empty
  std::function<void(bool)> on_guard_;  // may be empty

  qos::Scheduler scheduler_;
  qos::BoundSetpoint setpoint_;
  qos::BulkGovernor governor_;
  uint64_t bulk_cap_ = 0;  // what the scheduler was told last
  SchedulerConfig config_;
  std::map<ClassId, ClassSpec> classes_;
  std::map<ClassId, LatencyHistogram> latency_;
  std::map<ClassId, RecentLatency> recent_;
  LatencyHistogram alone_;  // small reads that had the device to themselves
  std::map<ClassId, FlowMeter> flows_;
  std::map<ClassId, qos::ClassCounters> baseline_;  // counters at the last reset
  std::map<ClassId, qos::ClassCounters> outside_;   // served past the scheduler
  std::map<ClassId, uint64_t> outside_baseline_;    // bytes of it at the last reset
  RateMeter device_;
  DispatcherActivity activity_;
  bool full_ = false;
  TimePoint full_since_;  // with full_
  TimePoint counted_since_;
  TimePoint latest_;
  TimePoint pull_wake_ = TimePoint::Max();  // what the last Pull asked for
  uint64_t outstanding_ = 0;
  uint64_t bypassed_bytes_ = 0;
  std::atomic<bool> bypass_{false};
  std::vector<ObjectOp*> batch_;                     // of PullBatch, kept for its capacity
  std::deque<ObjectOp*> pulled_;                     // from the scheduler, not started
  uint64_t bulk_left_ = kBulkPerTurn;                // of this turn
  uint64_t piece_bytes_ = UINT64_MAX;                // what the store was told last
  bool guarded_ = false;                             // what on_guard_ was told last
  std::vector<std::unique_ptr<ObjectOp>> answered_;  // the scheduler is still to be told
  bool pumping_ = false;
  bool pump_again_ = false;
  bool continues_ = false;  // a task of the next turn goes on
  bool draining_ = false;
  LoopTimer timer_ = 0;
  TimePoint timer_at_ = TimePoint::Max();
  std::vector<std::function<void()>> when_idle_;
  std::atomic<bool> disk_is_slow_{false};
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for tasks of the loop
};

}  // namespace weir::osd
