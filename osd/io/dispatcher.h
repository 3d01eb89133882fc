// Dispatcher: the one place where the pure Scheduler meets threads and the device.
//
//   Submit (RPC threads) ─► Scheduler ─► ObjectStore ─► completion (store threads) ─► Done
//                              ▲  pump: pull what may start, start it, until nothing may
//
// One mutex guards the Scheduler and the statistics; it is never held over I/O or a callback.
// A completion that nobody waits for takes it not at all: the operation is answered, and the next
// who asks the Scheduler anything first tells it of all that ended, each at its time.
// A small read that comes when nothing is under way, so that there is nothing to decide, goes
// ahead: the Scheduler is told of a few such at once, with what is told next, as every step that it
// takes alone finds its memory cold. Whoever pulls a small read starts it at once. Everything else
// that is pulled stands in one line, in the order of the pulls, and at most one thread at a time
// starts from there; it, or whoever comes, goes on. No request hops threads: it starts on the
// thread that submitted it, or on that of the completion that made room. An RPC or store thread
// hands over to the wake-up thread after kPumpBudget starts, and leaves it the large writes while
// somebody is in a hurry, so that it is never kept from its own work.
//
// Units:   bytes, monotonic times of the injected clock.
// Threads: everything from any thread.
// Errors:  none of its own; an operation's error goes to its Done.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/qos/qos_config.h"
#include "osd/io/latency_histogram.h"
#include "osd/io/object_op.h"
#include "osd/io/rate_meter.h"
#include "osd/io/recent_latency.h"
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
  std::vector<LatencyHistogram::Filled> latencies;  // all of them, as are the quantiles
  uint64_t latency_sum_us = 0;
  std::string name;  // empty: the class is gone
};

struct DispatcherStats {
  uint64_t token_rate = 0;          // G now
  uint64_t base_token_rate = 0;     // G0 as configured
  uint64_t device_bytes_per_s = 0;  // object bytes moved in the last second
  uint64_t bypassed_bytes = 0;      // since start, see SetBypass
  uint64_t pace = 0;                // for the processors' sake, bytes per second; 0: none
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
  // Asks for a Poll at that time at the latest; called without any lock of the Dispatcher. Empty:
  // the owner asks NextWake() itself (tests under a manual clock), and pumping has no budget.
  using Arm = std::function<void(TimePoint)>;

  // Starts with class 0. The store and the clock must outlive the Dispatcher.
  Dispatcher(ObjectStore& store, Clock& clock, const SchedulerConfig& config, Arm arm,
             qos::DecisionRecorder* recorder = nullptr);
  ~Dispatcher();  // Requires: idle, see WaitIdle
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // How long somebody on this machine has waited for a processor, a sum that grows; empty: it is
  // not known any more. Asked while a class with a latency bound is in a hurry.
  using Processors = std::function<std::optional<Duration>()>;
  // Before the first operation. Without it processors are taken to be free.
  void WatchProcessors(Processors processors) { processors_ = std::move(processors); }

  // While true each operation that comes starts at once, past the scheduler and every counter but
  // bypassed_bytes. Only to measure what metering costs.
  void SetBypass(bool bypass) { bypass_ = bypass; }

  void Submit(std::unique_ptr<ObjectOp> op);
  // Background I/O that may go is over; the operation is gone.
  void Ended(ObjectOp* op);
  // Takes background I/O that still waits out of the queue and counts it as served, outside: it
  // goes now, whatever the scheduler says. The operation is gone. False: it may go anyway.
  bool ServeOutside(ObjectOp* op);

  // Control loops that are due, and requests whose time has come. Returns when to call again.
  TimePoint Poll();
  [[nodiscard]] TimePoint NextWake();

  // Makes the running scheduler obey a new configuration: what changed, and nothing else, so that
  // buckets and tags of the others go on undisturbed. Classes that are not listed are removed.
  void Apply(const SchedulerConfig& config, const std::vector<ClassSpec>& classes);

  // What admission has booked of the disk.
  void SetBooked(uint64_t bytes_per_s);

  // Counters now; `reset` makes them (and the latencies) start from zero again.
  DispatcherStats Stats(bool reset);
  // Where the time of every class that had I/O went, since start.
  [[nodiscard]] std::map<ClassId, OsdClassTimes> Times();
  [[nodiscard]] DispatcherActivity Activity();
  // What was measured of the service, for admission by measurement.
  [[nodiscard]] qos::ServiceReport Measures();
  // The disk has become slower than promised.
  [[nodiscard]] bool disk_is_slow() const { return disk_is_slow_; }
  [[nodiscard]] uint64_t outstanding();

  // For a clean end: lifts every limit, so that what is queued goes as fast as the device can.
  void BeginDrain();
  // Waits until nothing is queued or on the device. Somebody must complete what is there.
  void WaitIdle();

 private:
  static constexpr int kBatch = 16;           // pulled per hold of the lock
  static constexpr uint64_t kMostAhead = 16;  // before the scheduler is told of them
  static constexpr int kPumpBudget = 64;      // starts before an RPC or store thread hands over
  static constexpr Duration kLongestPatience = std::chrono::milliseconds(5);

  using Lock = std::unique_lock<std::mutex>;
  // Of the clock, and never before a moment that the scheduler was told, which knows then of all
  // that ended; needs the lock.
  TimePoint Now();
  // Whether it may start before the scheduler is told of it; needs the lock, as the rest.
  bool GoesAhead(ObjectOp* op);
  void TellStart(ObjectOp* op);
  // Tells the scheduler of what went ahead and of what is in finished_.
  void AccountFinished();
  void AccountOne(ObjectOp* op);
  // Pulls and starts; needs the lock, which it lets go while it starts. Returns when to poll next.
  TimePoint Pump(Lock& lock, int budget);
  TimePoint PumpOnce(Lock& lock, int budget);
  // Finishes must take the lock from now on; needs the lock.
  [[nodiscard]] bool SomebodyWaits() const;
  // Pulls until nothing may go or the budget is spent, and starts the small reads.
  void PullAll(Lock& lock, int* budget);
  // Pulls a few: small reads to `quick`, returning how many, the rest to pulled_.
  int PullBatch(ObjectOp** quick);
  void StartThese(Lock& lock, ObjectOp** ops, int count);
  void TellPieces(TimePoint now);
  void NoteFull();
  void LetThemWait(ObjectOp** pulled, int count, TimePoint now);
  void Start(ObjectOp* op);
  void StartWrite(ObjectOp* op, ObjectStore::WriteDone done);
  void StartDelete(ObjectOp* op);
  void StartExtents(ObjectOp* op);
  void AddNext(const ObjectOp& op, ObjectOpResult* result);
  Duration Landed(ObjectOp* op);
  void Finish(ObjectOp* op, ObjectOpResult result, int budget);
  // It was answered: tells the scheduler now if somebody waits, else whoever comes next does.
  void FinishAnswered(ObjectOp* op, int budget);
  void AccountIfLast();
  void FinishThenAnswer(ObjectOp* op, ObjectOpResult result, int budget);
  void Account(const ObjectOp& op, TimePoint now);
  void ArmOutside(TimePoint when) const;
  // When the scheduler wants a Poll, whatever else happens; needs the lock.
  [[nodiscard]] TimePoint NextTimer() const;
  // Tells the scheduler, if it is time, how long processors were waited for; needs the lock.
  void LookAtProcessors(TimePoint now);
  [[nodiscard]] int Budget() const;
  // Of a thread of background I/O: the wake-up thread pumps for it.
  [[nodiscard]] int BackgroundBudget() const;

  ObjectStore& store_;
  Clock& clock_;
  const Arm arm_;
  Processors processors_;  // may be empty

  std::mutex mutex_;
  std::condition_variable idle_;
  qos::Scheduler scheduler_;
  SchedulerConfig config_;
  std::map<ClassId, ClassSpec> classes_;
  std::map<ClassId, LatencyHistogram> latency_;
  std::map<ClassId, RecentLatency> recent_;
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
  std::atomic<uint64_t> outstanding_{0};    // changes under the lock
  uint64_t bypassed_bytes_ = 0;
  std::atomic<bool> bypass_{false};
  std::deque<ObjectOp*> pulled_;       // from the scheduler, not started
  uint64_t piece_bytes_ = UINT64_MAX;  // what the store was told last
  ObjectOp* ahead_ = nullptr;          // the last that went ahead, until the scheduler is told
  uint64_t ahead_count_ = 0;           // with those before it of which it is not told either
  bool pumping_ = false;
  bool pump_again_ = false;
  bool draining_ = false;
  int wait_idle_ = 0;  // callers of WaitIdle
  std::atomic<bool> disk_is_slow_{false};

  // The two of a finish without the lock. It puts its operation into the one and then looks at the
  // other; whoever is going to wait sets that and then looks into the first: one of them sees.
  std::atomic<ObjectOp*> finished_{nullptr};  // a list, the last first
  std::atomic<bool> somebody_waits_{false};   // for room, or for all to end
  std::atomic<uint64_t> finishing_{0};  // calls of Finish, which may touch this until they end
};

}  // namespace weir::osd
