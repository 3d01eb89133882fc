#include "osd/io/dispatcher.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/qos/lane.h"

namespace weir::osd {
namespace {

// Of the pressure that may be: bulk is held back by that.
constexpr double kNearly = 0.8;

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
    case ObjectOpKind::kAllocate:
    case ObjectOpKind::kGiveBack:
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

// Somebody waits for each of these, and starting one is quick.
bool IsLightRead(const ObjectOp& op) {
  return op.kind == ObjectOpKind::kRead && LaneOf(op.length) == Lane::kInteractive;
}

// Starting one takes a while, as it is copied and summed; its commit costs little beside its data,
// so that it leaves the device before. (Smaller ones would crowd the commit instead.)
bool IsLargeWrite(const ObjectOp& op) {
  return op.kind == ObjectOpKind::kWrite && LaneOf(op.data.size()) == Lane::kBulk;
}

ObjectChange ChangeOf(const ObjectOp& op) {
  ObjectChange change{.id = op.object,
                      .offset = op.offset,
                      .length = op.length,
                      .zeros = op.zeros,
                      .source = op.source,
                      .data = op.data,
                      .terms = op.terms};
  switch (op.kind) {
    case ObjectOpKind::kTruncate:
      change.kind = ObjectChange::Kind::kTruncate;
      break;
    case ObjectOpKind::kPunch:
      change.kind = ObjectChange::Kind::kPunch;
      break;
    case ObjectOpKind::kAllocate:
      change.kind = ObjectChange::Kind::kAllocate;
      break;
    case ObjectOpKind::kGiveBack:
      change.kind = ObjectChange::Kind::kGiveBack;
      break;
    case ObjectOpKind::kCopy:
      change.kind = ObjectChange::Kind::kCopy;
      break;
    default:
      change.kind = ObjectChange::Kind::kWrite;
  }
  return change;
}

bool IsBackground(ObjectOpKind kind) {
  return kind == ObjectOpKind::kBackgroundRead || kind == ObjectOpKind::kBackgroundWrite;
}

}  // namespace

uint64_t ChargedBytesOf(const ObjectOp& op) {
  return ChargedBytes(op);
}

Dispatcher::Dispatcher(ObjectStore& store, Clock& clock, Loop& loop, const SchedulerConfig& config,
                       qos::DecisionRecorder* recorder)
    : store_(store),
      clock_(clock),
      loop_(loop),
      scheduler_(config, clock.Now(), recorder),
      config_(config),
      counted_since_(clock.Now()) {
  setpoint_.SetLeast(config.processor_pressure / 100.0);
  governor_.Choose(setpoint_.pressure());
}

Dispatcher::~Dispatcher() {
  AccountAnswered();
  WEIR_CHECK(outstanding_ == 0, "a Dispatcher ends with operations under way");
  loop_.CancelTimer(timer_);
}

// The scheduler's time does not go back.
TimePoint Dispatcher::Now() {
  return latest_ = std::max(latest_, clock_.Now());
}

void Dispatcher::Submit(std::unique_ptr<ObjectOp> owned) {
  ObjectOp* op = owned.release();  // until it is accounted
  op->request_ = {};
  op->request_.class_id = op->class_id;
  op->request_.op = SchedulerKind(*op);
  op->request_.bytes = ChargedBytes(*op);
  op->request_.lba = IsBackground(op->kind) ? op->offset : store_.LbaHint(op->object, op->offset);
  op->request_.elsewhere = op->elsewhere;
  op->request_.transaction = op->transaction;
  op->request_.flow = op->flow;
  op->request_.context = op;
  ++outstanding_;
  op->bypasses_ = bypass_;
  if (op->bypasses_) {
    bypassed_bytes_ += op->request_.bytes;
    return Start(op);
  }
  AccountAnswered();
  scheduler_.Enqueue(&op->request_, Now());
  op->light_ = FlowOrder::IsLight(op->request_.in_flow);
  if (op->waited > Duration(0)) NoteWaited(*op);
  Pump();
}

// Nothing more may start because of rates, not of the device: rates hold the operations. One that
// stood in line can stand a quarter longer, to share a flush with the next; unless it keeps a slot
// of a full device meanwhile, for which those behind it wait.
void Dispatcher::LetThemWait(const std::vector<ObjectOp*>& pulled, TimePoint now) {
  const qos::Advice advice = scheduler_.Advise(now);
  for (ObjectOp* op : pulled) {
    if (op->patience_ > Duration(0)) continue;  // for its burst
    if (!advice.has_slot && !(advice.landing_frees && IsLargeWrite(*op))) continue;
    op->patience_ = std::min((now - op->request_.arrival) / 4, kLongestPatience);
  }
}

// Before anything that was pulled starts: a large operation must not go whole when a light one has
// just come.
void Dispatcher::Tell(const qos::Advice& advice, TimePoint now) {
  if (config_.surplus == SurplusKind::kDsfq) {
    governor_.Guarded(scheduler_.guarded_until(), now);
    SetBulkCap(now);
  }
  const bool guarded = now < scheduler_.guarded_until();
  if (std::exchange(guarded_, guarded) != guarded && on_guard_) on_guard_(guarded);
  if (std::exchange(piece_bytes_, advice.piece_bytes) == advice.piece_bytes) return;
  store_.SetPieceBytes(advice.piece_bytes);
}

void Dispatcher::NoteWaited(const ObjectOp& op) {
  const auto found = classes_.find(op.class_id);
  const bool acts = processors_ && config_.surplus == SurplusKind::kDsfq;
  if (!acts || found == classes_.end()) return;
  const ServiceContract& contract = found->second.service;
  if (contract.bound == Duration(0)) return;
  // The governor keeps its rate while nothing is guarded; more is no use to who does not need it.
  const bool held = bulk_cap_ > 0 && latest_ < scheduler_.guarded_until() &&
                    governor_.pressure() > kNearly * setpoint_.pressure();
  setpoint_.Waited(op.class_id, contract, op.waited, held, latest_);
  governor_.Choose(setpoint_.pressure());
}

void Dispatcher::SetBulkCap(TimePoint now) {
  const uint64_t rate = governor_.rate();
  if (std::exchange(bulk_cap_, rate) != rate) scheduler_.SetBulkCap(rate, now);
}

void Dispatcher::PullBatch() {
  const TimePoint now = Now();
  Tell(scheduler_.Advise(now), now);
  batch_.clear();
  pull_wake_ = TimePoint::Max();
  for (int count = 0; count < kBatch; ++count) {
    const bool any = count == 0 || scheduler_.queued() > 0;  // else spare the question
    // What was started may have ended meanwhile, and the scheduler been told of it.
    const qos::PullResult pulled = any ? scheduler_.Pull(latest_) : qos::PullResult{};
    if (pulled.request == nullptr) {
      pull_wake_ = pulled.wake_at.value_or(TimePoint::Max());
      if (!batch_.empty()) LetThemWait(batch_, latest_);
      return;
    }
    auto* op = static_cast<ObjectOp*>(pulled.request->context);
    if (IsLightRead(*op)) {
      Start(op);
      continue;
    }
    if (pulled.patience) op->patience_ = *pulled.patience;
    batch_.push_back(op);
    pulled_.push_back(op);
  }
  pump_again_ = true;
}

void Dispatcher::Pump() {
  AccountAnswered();
  pump_again_ = true;
  if (pumping_) return;
  pumping_ = true;
  while (pump_again_) {
    pump_again_ = false;
    PullBatch();
    StartPulled();
  }
  pumping_ = false;
  NoteFull(Now());
  ArmTimer();
}

void Dispatcher::StartPulled() {
  while (!pulled_.empty()) {
    ObjectOp* const op = pulled_.front();
    if (IsLargeWrite(*op)) {
      if (bulk_left_ == 0) return ContinueInNextTurn();
      bulk_left_ -= std::min<uint64_t>(bulk_left_, op->data.size());
      ContinueInNextTurn();  // which has its own
    }
    pulled_.pop_front();
    Start(op);
  }
}

void Dispatcher::ContinueInNextTurn() {
  if (std::exchange(continues_, true)) return;
  loop_.Post([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    continues_ = false;
    bulk_left_ = kBulkPerTurn;
    if (!pulled_.empty()) Pump();
  });
}

void Dispatcher::StartDelete(ObjectOp* op) {
  auto done = [this, op](const Result<DeletedObjects>& deleted) {
    ObjectOpResult result;
    result.status = deleted.status();
    if (deleted.ok()) {
      result.next_index = deleted->next_index;
      result.info.freed_bytes = deleted->freed_bytes;
    }
    Finish(op, std::move(result));
  };
  if (op->length == 0) {
    store_.DeleteInode(op->object.inode, op->object.index, std::move(done));
  } else {
    store_.DeleteSome(op->object.inode, op->object.index, op->length, std::move(done));
  }
}

void Dispatcher::StartExtents(ObjectOp* op) {
  store_.Extents(op->object, op->offset, op->length,
                 [this, op](Result<std::vector<ByteRange>> extents) {
                   ObjectOpResult result;
                   result.status = extents.status();
                   if (extents.ok()) result.extents = std::move(*extents);
                   FinishWithNext(op, std::move(result));
                 });
}

void Dispatcher::FinishWithNext(ObjectOp* op, ObjectOpResult result) {
  if (!op->want_next || !result.status.ok()) return Finish(op, std::move(result));
  auto owned = std::make_shared<ObjectOpResult>(std::move(result));
  store_.NextIndex(op->object, [this, op, owned](const Result<uint64_t>& next) {
    // Where it is not known, the next one is asked for.
    owned->next_object = next.ok() ? *next : op->object.index + 1;
    Finish(op, std::move(*owned));
  });
}

void Dispatcher::StartWrite(ObjectOp* op, ObjectStore::WriteDone done) {
  ObjectChange change = ChangeOf(*op);
  change.hints.patience = op->patience_;
  change.hints.crc = op->data_crc;
  if (IsLargeWrite(*op) && !op->bypasses_) change.hints.landed = [this, op] { return Landed(op); };
  store_.Change(std::move(change), std::move(done));
}

void Dispatcher::Start(ObjectOp* op) {
  auto with_info = [this, op](Result<ObjectInfo> info) {
    ObjectOpResult result;
    result.status = info.status();
    if (info.ok()) result.info = std::move(*info);
    FinishWithNext(op, std::move(result));
  };
  switch (op->kind) {
    case ObjectOpKind::kRead:
      store_.Read(op->object, op->offset, op->length, [this, op](Result<ObjectData> data) {
        ObjectOpResult result;
        if (data.ok()) {
          result.data = std::move(data->bytes);
          result.data_crc = data->crc;
        } else {
          result.status = data.status();
        }
        Finish(op, std::move(result));
      });
      return;
    case ObjectOpKind::kWrite:
      StartWrite(op, with_info);
      return;
    case ObjectOpKind::kDeleteInode:
      StartDelete(op);
      return;
    case ObjectOpKind::kStat:
      store_.Stat(op->object, with_info);
      return;
    case ObjectOpKind::kTruncate:
    case ObjectOpKind::kPunch:
    case ObjectOpKind::kAllocate:
    case ObjectOpKind::kGiveBack:
    case ObjectOpKind::kCopy:
      store_.Change(ChangeOf(*op), with_info);
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

void Dispatcher::Account(const ObjectOp& op, TimePoint when) {
  const auto micros = std::max<int64_t>(0, (when - op.request_.arrival).count()) / 1000;
  latency_[op.request_.queue].Record(static_cast<uint64_t>(micros));
  recent_[op.request_.queue].Record(static_cast<uint64_t>(micros), when);
  if (op.request_.alone && IsLightRead(op)) {
    alone_.Record(static_cast<uint64_t>(op.request_.device_time / std::chrono::microseconds(1)));
  }
  device_.Add(op.request_.bytes, when);
}

Duration Dispatcher::Landed(ObjectOp* op) {
  AccountAnswered();
  const TimePoint now = Now();
  if (!scheduler_.Advise(now).landing_frees) return op->patience_;
  const Duration patience = scheduler_.Landed(&op->request_, now).value_or(op->patience_);
  Pump();
  return patience;
}

// Whoever waits for a small read hears before the accounts are made, which, if nobody waits for its
// slot, the turn's end does; else the device comes first, which has a free slot, while the answer
// only has a little further to go.
void Dispatcher::Finish(ObjectOp* op, ObjectOpResult result) {
  WEIR_CHECK(loop_.InLoop(), "the store calls back on another thread");
  std::unique_ptr<ObjectOp> owned(op);
  if (op->bypasses_) {
    op->Done(std::move(result));
    return Leave();
  }
  op->finished_ = std::max(latest_, clock_.Now());
  if (IsLightRead(*op)) {
    op->Done(std::move(result));
    answered_.push_back(std::move(owned));
    const bool somebody_waits = scheduler_.queued() > 0 || !pulled_.empty();
    return somebody_waits ? Pump() : AccountAtTurnEnd();
  }
  AccountAnswered();
  AccountOne(*op);
  Pump();
  op->Done(std::move(result));
  Leave();
}

// Behind the sending of the answers, whose Done has asked for the turn's end before. A Submit that
// comes in between accounts first, so that there is nothing left to do then.
void Dispatcher::AccountAtTurnEnd() {
  if (answered_.size() > 1) return;
  loop_.AtTurnEnd([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired() || answered_.empty()) return;
    AccountAnswered();
    NoteFull(latest_);
    ArmTimer();
  });
}

// Inside its Done the scheduler may have been told of later moments.
void Dispatcher::AccountOne(ObjectOp& op) {
  latest_ = op.finished_ = std::max(op.finished_, latest_);
  scheduler_.Completed(&op.request_, op.finished_);
  activity_.completed += IsBackground(op.kind) ? 0 : 1;
  Account(op, op.finished_);
  if (!IsBackground(op.kind)) CountFlow(op);
}

void Dispatcher::CountFlow(const ObjectOp& op) {
  FlowMeter& meter = flows_.try_emplace(op.request_.queue, op.finished_).first->second;
  const FlowUse use{.device_ns = op.request_.in_flow.cost,
                    .requests = 1,
                    .bytes = op.request_.bytes,
                    .light_requests = op.light_ ? 1U : 0U};
  meter.Add(op.counted_for, use, op.finished_, [&op] { return op.Owner(); });
}

void Dispatcher::AccountAnswered() {
  if (answered_.empty()) return;
  for (const auto& op : answered_) AccountOne(*op);
  std::vector<std::unique_ptr<ObjectOp>> gone;
  gone.swap(answered_);
  for (size_t i = 0; i < gone.size(); ++i) Leave();
}

void Dispatcher::Leave() {
  if (--outstanding_ > 0 || when_idle_.empty()) return;
  std::vector<std::function<void()>> told;
  told.swap(when_idle_);
  for (const auto& idle : told) idle();
}

void Dispatcher::WhenIdle(std::function<void()> idle) {
  AccountAnswered();
  if (outstanding_ == 0) return idle();
  when_idle_.push_back(std::move(idle));
}

void Dispatcher::Ended(ObjectOp* op) {
  Finish(op, {});
}

bool Dispatcher::ServeOutside(ObjectOp* op) {
  AccountAnswered();
  const TimePoint now = Now();
  if (!scheduler_.Cancel(&op->request_, now)) {
    // It may stand in line behind large writes. Whoever asked does not wait for its turn there, and
    // says Ended before it.
    if (std::erase(pulled_, op) > 0) Start(op);
    return false;
  }
  const std::unique_ptr<ObjectOp> owned(op);
  Account(*op, now);
  qos::ClassCounters& outside = outside_[op->request_.queue];
  ++outside.served_ops;
  outside.served_bytes += op->request_.bytes;
  scheduler_.DoneOutside(op->request_.bytes);
  Pump();
  Leave();
  return true;
}

TimePoint Dispatcher::NextTimer() const {
  const TimePoint tick = scheduler_.NextTick();
  return processors_ ? std::min(tick, governor_.LookAt()) : tick;
}

TimePoint Dispatcher::NextWake() const {
  return std::min(pull_wake_, NextTimer());
}

void Dispatcher::ArmTimer() {
  const TimePoint when = NextWake();
  if (when == timer_at_) return;
  loop_.CancelTimer(timer_);
  timer_at_ = when;
  timer_ = when == TimePoint::Max() ? 0 : loop_.RunAt(when, [this] {
    timer_ = 0;
    timer_at_ = TimePoint::Max();
    Poll();
  });
}

void Dispatcher::Govern(TimePoint now) {
  if (!processors_ || now < governor_.LookAt()) return;
  if (const std::optional<Duration> waited = processors_()) {
    governor_.Look(*waited, scheduler_.State(now).bulk_taken, now);
    SetBulkCap(now);
  } else {
    processors_ = nullptr;
    governor_.Choose(1);
    SetBulkCap(now);
  }
}

TimePoint Dispatcher::Poll() {
  AccountAnswered();
  const TimePoint now = Now();
  Govern(now);
  if (now >= scheduler_.NextTick()) {
    scheduler_.Tick(now);
    disk_is_slow_ = scheduler_.State(now).disk.slow;
  }
  Pump();
  return NextWake();
}

}  // namespace weir::osd
