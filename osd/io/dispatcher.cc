#include "osd/io/dispatcher.h"

#include <algorithm>
#include <array>
#include <limits>

#include "common/base/check.h"
#include "osd/qos/admission/service_monitor.h"

namespace weir::osd {
namespace {

bool MovesBytes(const ObjectOp& op) {
  return !CopySharesBlocks(op.source.offset, op.offset, op.length);
}

// A copy that shares blocks reads and rewrites no more than the ragged blocks at its ends.
uint64_t BytesOfCopy(const ObjectOp& op) {
  if (MovesBytes(op)) return 2 * op.length;
  const uint64_t ragged =
      (op.offset % kBlockSize != 0 ? 1 : 0) + ((op.offset + op.length) % kBlockSize != 0 ? 1 : 0);
  return kMetadataOpBytes + 2 * ragged * kBlockSize;
}

qos::OpKind SchedulerKind(const ObjectOp& op) {
  switch (op.kind) {
    case ObjectOpKind::kRead:
    case ObjectOpKind::kBackgroundRead:
      return qos::OpKind::kRead;
    case ObjectOpKind::kWrite:
    case ObjectOpKind::kBackgroundWrite:
      return qos::OpKind::kWrite;
    case ObjectOpKind::kCopy:
      return MovesBytes(op) ? qos::OpKind::kWrite : qos::OpKind::kOther;
    default:
      return qos::OpKind::kOther;
  }
}

uint64_t ChargedBytes(const ObjectOp& op) {
  switch (op.kind) {
    case ObjectOpKind::kRead:
    case ObjectOpKind::kBackgroundRead:
    case ObjectOpKind::kBackgroundWrite:
      return op.length;
    case ObjectOpKind::kWrite:
      return op.data.size();
    case ObjectOpKind::kTruncate:
    case ObjectOpKind::kPunch:
    case ObjectOpKind::kExtents:
      return kMetadataOpBytes;
    case ObjectOpKind::kDeleteInode:
      return kMetadataOpBytes * std::max<uint64_t>(op.length, 1);
    case ObjectOpKind::kCopy:
      return BytesOfCopy(op);
    case ObjectOpKind::kStat:
      return 0;
  }
  return 0;
}

bool IsBackground(ObjectOpKind kind) {
  return kind == ObjectOpKind::kBackgroundRead || kind == ObjectOpKind::kBackgroundWrite;
}

LatencyQuantiles QuantilesOf(const LatencyHistogram& latency) {
  return {.p50_us = latency.Quantile(0.5),
          .p90_us = latency.Quantile(0.9),
          .p99_us = latency.Quantile(0.99),
          .p999_us = latency.Quantile(0.999)};
}

// reservation_ends is left out: it is `ends` on another clock, and wobbles with the translation.
bool SameSpec(const ClassSpec& a, const ClassSpec& b) {
  return a.id == b.id && a.name == b.name && a.weight == b.weight && a.min_weight == b.min_weight &&
         a.limit_bytes_per_s == b.limit_bytes_per_s && a.reservation == b.reservation &&
         a.disk == b.disk && a.service == b.service && a.admission == b.admission;
}

bool SameConfig(const SchedulerConfig& a, const SchedulerConfig& b) {
  if (a.reset_idle != b.reset_idle) return false;
  return a.profile == b.profile && a.guarantee == b.guarantee && a.surplus == b.surplus &&
         a.sharing == b.sharing && a.gate == b.gate && a.dispatch == b.dispatch &&
         a.cost == b.cost && a.maximizer == b.maximizer && a.depth == b.depth &&
         a.token_rate == b.token_rate && a.best_effort_min == b.best_effort_min &&
         a.iops_max == b.iops_max && a.bottleneck_aware == b.bottleneck_aware &&
         a.quantum == b.quantum && a.throughput_window == b.throughput_window &&
         a.spare == b.spare && a.cvc == b.cvc;
}

}  // namespace

uint64_t ChargedBytesOf(const ObjectOp& op) {
  return ChargedBytes(op);
}

Dispatcher::Dispatcher(ObjectStore& store, Clock& clock, const SchedulerConfig& config, Arm arm)
    : store_(store),
      clock_(clock),
      arm_(std::move(arm)),
      scheduler_(config, clock.Now()),
      config_(config),
      counted_since_(clock.Now()) {}

Dispatcher::~Dispatcher() {
  Lock lock(mutex_);
  WEIR_CHECK(outstanding_ == 0, "a Dispatcher ends with operations under way");
}

int Dispatcher::Budget() const {
  return arm_ ? kPumpBudget : std::numeric_limits<int>::max();
}

int Dispatcher::BackgroundBudget() const {
  return arm_ ? 0 : Budget();
}

void Dispatcher::ArmOutside(TimePoint when) const {
  if (arm_) arm_(when);
}

void Dispatcher::Submit(std::unique_ptr<ObjectOp> owned) {
  ObjectOp* op = owned.release();  // until Finish
  op->request_ = {};
  op->request_.class_id = op->class_id;
  op->request_.op = SchedulerKind(*op);
  op->request_.bytes = ChargedBytes(*op);
  op->request_.lba = IsBackground(op->kind) ? op->offset : store_.LbaHint(op->object, op->offset);
  op->request_.elsewhere = op->elsewhere;
  op->request_.context = op;
  const int budget = IsBackground(op->kind) ? BackgroundBudget() : Budget();

  Lock lock(mutex_);
  // Senders count tokens. Under cost `requests` the others were, as far as we know, like this one.
  if (config_.cost == CostKind::kRequests) {
    op->request_.elsewhere /= TokensOf(op->request_.bytes);
  }
  ++outstanding_;
  scheduler_.Enqueue(&op->request_, clock_.Now());
  const TimePoint wake = Pump(lock, budget);
  lock.unlock();
  ArmOutside(wake);
}

// Nothing more may start although the device has room: the operations are paced. One that stood in
// line for tokens can stand a quarter longer, to share a flush with the next. With a full device it
// must not: those behind it wait for its slot.
void Dispatcher::LetThemWait(ObjectOp** batch, int count, TimePoint now) {
  for (int i = 0; i < count; ++i) {
    const Duration waited = now - batch[i]->request_.arrival;
    batch[i]->patience_ = std::min(waited / 4, kLongestPatience);
  }
}

// Before anything that was pulled starts: a large operation must not go whole when somebody in a
// hurry has just come.
void Dispatcher::TellPieces(TimePoint now) {
  const uint64_t bytes = scheduler_.ChunkBytes(now);
  if (bytes == piece_bytes_) return;
  piece_bytes_ = bytes;
  store_.SetPieceBytes(bytes);
}

int Dispatcher::PullBatch(ObjectOp** batch, TimePoint* wake_at) {
  const TimePoint now = clock_.Now();
  TellPieces(now);
  for (int i = 0; i < kBatch; ++i) {
    const qos::PullResult pulled = scheduler_.Pull(now);
    if (pulled.request == nullptr) {
      *wake_at = pulled.wake_at.value_or(TimePoint::Max());
      if (scheduler_.HasFreeSlot(now)) LetThemWait(batch, i, now);
      return i;
    }
    batch[i] = static_cast<ObjectOp*>(pulled.request->context);
  }
  *wake_at = TimePoint::Max();
  pump_again_ = true;
  return kBatch;
}

void Dispatcher::NoteFull() {
  const TimePoint now = clock_.Now();
  const bool waits = config_.gate == GateKind::kStrict && scheduler_.queued() > 0;
  const bool full = waits || (scheduler_.in_flight() > 0 && !scheduler_.HasFreeSlot(now));
  if (full == full_) return;
  if (full_) activity_.full += now - full_since_;
  full_ = full;
  full_since_ = now;
}

TimePoint Dispatcher::Pump(Lock& lock, int budget) {
  pump_again_ = true;
  if (pumping_) return TimePoint::Max();  // the one who pumps sees the note
  pumping_ = true;
  while (pump_again_ && budget > 0) {
    pump_again_ = false;
    std::array<ObjectOp*, kBatch> batch;
    const int pulled = PullBatch(batch.data(), &pull_wake_);
    if (pulled == 0) continue;
    budget -= pulled;
    lock.unlock();
    for (int i = 0; i < pulled; ++i) Start(batch[i]);
    lock.lock();
  }
  pumping_ = false;
  NoteFull();
  if (pump_again_) pull_wake_ = clock_.Now();  // out of budget: the wake-up thread goes on
  return std::min(pull_wake_, scheduler_.NextTick());
}

void Dispatcher::StartDelete(ObjectOp* op) {
  if (op->length == 0) {
    store_.DeleteInode(op->object.inode, op->object.index, [this, op](Status status) {
      ObjectOpResult result;
      result.status = std::move(status);
      Finish(op, std::move(result), Budget());
    });
    return;
  }
  store_.DeleteSome(op->object.inode, op->object.index, op->length,
                    [this, op](const Result<uint64_t>& next) {
                      ObjectOpResult result;
                      result.status = next.status();
                      if (next.ok()) result.next_index = *next;
                      Finish(op, std::move(result), Budget());
                    });
}

void Dispatcher::StartExtents(ObjectOp* op) {
  store_.Extents(op->object, op->offset, op->length,
                 [this, op](Result<std::vector<ByteRange>> extents) {
                   ObjectOpResult result;
                   if (extents.ok()) {
                     result.extents = std::move(*extents);
                     AddNext(*op, &result);
                   } else {
                     result.status = extents.status();
                   }
                   Finish(op, std::move(result), Budget());
                 });
}

void Dispatcher::AddNext(const ObjectOp& op, ObjectOpResult* result) {
  if (!op.want_next) return;
  const Result<uint64_t> next = store_.NextIndex(op.object);
  result->next_object = next.ok() ? *next : op.object.index + 1;  // then that one is asked for
}

void Dispatcher::Start(ObjectOp* op) {
  auto with_info = [this, op](Result<ObjectInfo> info) {
    ObjectOpResult result;
    if (info.ok()) {
      result.info = *info;
      AddNext(*op, &result);
    } else {
      result.status = info.status();
    }
    Finish(op, std::move(result), Budget());
  };
  switch (op->kind) {
    case ObjectOpKind::kRead:
      store_.Read(op->object, op->offset, op->length, [this, op](Result<Buffer> data) {
        ObjectOpResult result;
        if (data.ok()) {
          result.data = std::move(*data);
        } else {
          result.status = data.status();
        }
        Finish(op, std::move(result), Budget());
      });
      return;
    case ObjectOpKind::kWrite:
      store_.Write(op->object, op->offset, op->data, {.patience = op->patience_}, with_info);
      return;
    case ObjectOpKind::kTruncate:
      store_.Truncate(op->object, op->offset, with_info);
      return;
    case ObjectOpKind::kDeleteInode:
      StartDelete(op);
      return;
    case ObjectOpKind::kStat:
      store_.Stat(op->object, with_info);
      return;
    case ObjectOpKind::kPunch:
      store_.Punch(op->object, op->offset, op->length, with_info);
      return;
    case ObjectOpKind::kCopy:
      store_.Copy(op->source, op->object, op->offset, op->length, with_info);
      return;
    case ObjectOpKind::kExtents:
      StartExtents(op);
      return;
    case ObjectOpKind::kBackgroundRead:
    case ObjectOpKind::kBackgroundWrite:
      op->MayGo();
      return;
  }
}

void Dispatcher::Account(const ObjectOp& op, TimePoint now) {
  const auto micros = std::max<int64_t>(0, (now - op.request_.arrival).count()) / 1000;
  latency_[op.request_.queue].Record(static_cast<uint64_t>(micros));
  recent_[op.request_.queue].Record(static_cast<uint64_t>(micros), now);
  device_.Add(op.request_.bytes, now);
}

void Dispatcher::Finish(ObjectOp* op, ObjectOpResult result, int budget) {
  const std::unique_ptr<ObjectOp> owned(op);
  Lock lock(mutex_);
  const TimePoint now = clock_.Now();
  scheduler_.Completed(&op->request_, now);
  activity_.completed += IsBackground(op->kind) ? 0 : 1;
  Account(*op, now);
  // The device first: it has a free slot, while the answer only has a little further to go.
  const TimePoint wake = Pump(lock, budget);
  lock.unlock();
  ArmOutside(wake);
  op->Done(std::move(result));
  lock.lock();
  if (--outstanding_ == 0) idle_.notify_all();
}

void Dispatcher::Ended(ObjectOp* op) {
  Finish(op, {}, BackgroundBudget());
}

bool Dispatcher::ServeOutside(ObjectOp* op) {
  Lock lock(mutex_);
  const TimePoint now = clock_.Now();
  if (!scheduler_.Cancel(&op->request_, now)) return false;
  const std::unique_ptr<ObjectOp> owned(op);
  Account(*op, now);
  qos::ClassCounters& outside = outside_[op->request_.queue];
  ++outside.served_ops;
  outside.served_bytes += op->request_.bytes;
  scheduler_.DoneOutside(op->request_.bytes);
  if (--outstanding_ == 0) idle_.notify_all();
  const TimePoint wake = Pump(lock, BackgroundBudget());
  lock.unlock();
  ArmOutside(wake);
  return true;
}

TimePoint Dispatcher::Poll() {
  Lock lock(mutex_);
  const TimePoint now = clock_.Now();
  if (now >= scheduler_.NextTick()) {
    scheduler_.Tick(now);
    disk_is_slow_ = scheduler_.Disk().slow;
  }
  return Pump(lock, std::numeric_limits<int>::max());
}

TimePoint Dispatcher::NextWake() {
  Lock lock(mutex_);
  return std::min(pull_wake_, scheduler_.NextTick());
}

void Dispatcher::Apply(const SchedulerConfig& config, const std::vector<ClassSpec>& classes) {
  Lock lock(mutex_);
  if (draining_) return;
  const TimePoint now = clock_.Now();
  if (!SameConfig(config, config_)) {
    scheduler_.Configure(config, now);
    config_ = config;
  }
  std::map<ClassId, ClassSpec> wanted;
  for (const ClassSpec& spec : classes) wanted[spec.id] = spec;
  for (auto it = classes_.begin(); it != classes_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    if (it->first != kBestEffort) scheduler_.RemoveClass(it->first, now);
    latency_.erase(it->first);
    recent_.erase(it->first);
    baseline_.erase(it->first);
    outside_.erase(it->first);
    outside_baseline_.erase(it->first);
    it = classes_.erase(it);
  }
  for (const auto& [id, spec] : wanted) {
    const auto have = classes_.find(id);
    if (have != classes_.end() && SameSpec(have->second, spec)) continue;
    scheduler_.SetClass(spec, now);
    classes_[id] = spec;
  }
  const TimePoint wake = Pump(lock, Budget());
  lock.unlock();
  ArmOutside(wake);
}

void Dispatcher::SetBooked(uint64_t bytes_per_s) {
  Lock lock(mutex_);
  scheduler_.SetBooked(bytes_per_s);
}

DispatcherStats Dispatcher::Stats(bool reset) {
  Lock lock(mutex_);
  const TimePoint now = clock_.Now();
  DispatcherStats stats;
  stats.token_rate = scheduler_.token_rate();
  stats.base_token_rate = config_.token_rate;
  stats.device_bytes_per_s = device_.BytesPerSecond(now);
  stats.disk = scheduler_.Disk();
  stats.window = now - counted_since_;
  for (qos::ClassCounters& total : scheduler_.Counters(now)) {
    const qos::ClassCounters& outside = outside_[total.id];
    total.served_ops += outside.served_ops;
    total.served_bytes += outside.served_bytes;
    DispatcherClassStats one{.counters = total};
    one.outside_bytes = outside.served_bytes - outside_baseline_[total.id];
    const qos::ClassCounters& base = baseline_[total.id];
    one.counters.served_ops -= base.served_ops;
    one.counters.served_bytes -= base.served_bytes;
    one.counters.guaranteed_bytes -= base.guaranteed_bytes;
    one.counters.surplus_bytes -= base.surplus_bytes;
    one.counters.arrived_bytes -= base.arrived_bytes;
    one.counters.violation_seconds -= base.violation_seconds;
    one.counters.deadline_misses -= base.deadline_misses;
    const LatencyHistogram& latency = latency_[total.id];
    one.p50_us = latency.Quantile(0.5);
    one.p90_us = latency.Quantile(0.9);
    one.p99_us = latency.Quantile(0.99);
    one.p999_us = latency.Quantile(0.999);
    if (const auto found = recent_.find(total.id); found != recent_.end()) {
      one.recent = QuantilesOf(found->second.At(now));
    }
    one.counters.times.ops = total.served_ops;
    one.counters.times.bytes = total.served_bytes;
    one.latencies = latency.FilledBuckets();
    one.latency_sum_us = latency.sum();
    if (const auto spec = classes_.find(total.id); spec != classes_.end()) {
      one.name = spec->second.name;
    }
    stats.classes.push_back(std::move(one));
    if (reset) baseline_[total.id] = total;
    if (reset) outside_baseline_[total.id] = outside.served_bytes;
  }
  if (reset) {
    latency_.clear();
    counted_since_ = now;
  }
  return stats;
}

std::map<ClassId, OsdClassTimes> Dispatcher::Times() {
  Lock lock(mutex_);
  std::map<ClassId, OsdClassTimes> all;
  for (qos::ClassCounters& total : scheduler_.Counters(clock_.Now())) {
    const qos::ClassCounters& outside = outside_[total.id];
    total.times.ops = total.served_ops + outside.served_ops;
    total.times.bytes = total.served_bytes + outside.served_bytes;
    if (total.times != OsdClassTimes()) all[total.id] = total.times;
  }
  return all;
}

DispatcherActivity Dispatcher::Activity() {
  Lock lock(mutex_);
  DispatcherActivity activity = activity_;
  if (full_) activity.full += clock_.Now() - full_since_;
  return activity;
}

qos::ServiceReport Dispatcher::Measures() {
  Lock lock(mutex_);
  return scheduler_.Measures();
}

uint64_t Dispatcher::outstanding() {
  Lock lock(mutex_);
  return outstanding_;
}

void Dispatcher::BeginDrain() {
  Lock lock(mutex_);
  draining_ = true;
  const TimePoint now = clock_.Now();
  for (const auto& [id, spec] : classes_) {
    ClassSpec open = spec;
    open.limit_bytes_per_s.reset();
    open.service = {};
    open.disk = {};
    open.reservation.reset();
    open.reservation_ends.reset();
    scheduler_.SetClass(open, now);
  }
  config_.guarantee = GuaranteeKind::kNone;
  config_.gate = GateKind::kConserving;
  scheduler_.Configure(config_, now);
  const TimePoint wake = Pump(lock, Budget());
  lock.unlock();
  ArmOutside(wake);
}

void Dispatcher::WaitIdle() {
  Lock lock(mutex_);
  idle_.wait(lock, [this] { return outstanding_ == 0; });
}

}  // namespace weir::osd
