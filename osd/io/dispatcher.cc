#include "osd/io/dispatcher.h"

#include <algorithm>
#include <array>
#include <limits>
#include <thread>
#include <utility>

#include "common/base/check.h"

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
constexpr uint64_t kSmallRead = 32 << 10;

bool IsQuick(const ObjectOp& op) {
  return op.kind == ObjectOpKind::kRead && op.length <= kSmallRead;
}

// Starting one takes a while, as it is copied and summed; its commit costs little beside its data,
// so that it leaves the device before. (Smaller ones would crowd the commit instead.)
bool IsLargeWrite(const ObjectOp& op) {
  return op.kind == ObjectOpKind::kWrite && op.data.size() >= qos::kLandingBytes;
}

// Whose Start this thread is in.
thread_local const Dispatcher* starting = nullptr;

bool IsBackground(ObjectOpKind kind) {
  return kind == ObjectOpKind::kBackgroundRead || kind == ObjectOpKind::kBackgroundWrite;
}

}  // namespace

uint64_t ChargedBytesOf(const ObjectOp& op) {
  return ChargedBytes(op);
}

Dispatcher::Dispatcher(ObjectStore& store, Clock& clock, const SchedulerConfig& config, Arm arm,
                       qos::DecisionRecorder* recorder)
    : store_(store),
      clock_(clock),
      arm_(std::move(arm)),
      scheduler_(config, clock.Now(), recorder),
      config_(config),
      counted_since_(clock.Now()) {}

Dispatcher::~Dispatcher() {
  Lock lock(mutex_);
  AccountFinished();
  WEIR_CHECK(outstanding_ == 0, "a Dispatcher ends with operations under way");
}

// The scheduler's time does not go back.
TimePoint Dispatcher::Now() {
  AccountFinished();
  return latest_ = std::max(latest_, clock_.Now());
}

// What is outstanding went ahead too, and its last is the last that ended: so all of it has ended.
bool Dispatcher::GoesAhead(ObjectOp* op) {
  if (!IsQuick(*op) || somebody_waits_) return false;
  if (outstanding_ != ahead_count_) AccountFinished();
  if (outstanding_ != ahead_count_ || finished_.load() != ahead_) return false;
  const TimePoint now = std::max(latest_, clock_.Now());
  if (!scheduler_.GoesAtOnce(op->request_, now)) return false;
  ahead_ = op;
  ++ahead_count_;
  op->ahead_since_ = now;
  op->went_ahead_ = true;
  return true;
}

void Dispatcher::TellStart(ObjectOp* op) {
  const TimePoint since = latest_ = op->ahead_since_;
  op->told_ = true;
  scheduler_.Enqueue(&op->request_, since);
  const qos::PullResult pulled = scheduler_.Pull(since);
  WEIR_CHECK(pulled.request == &op->request_, "a read that went ahead goes at once");
}

// Those that went ahead ended one after the other, and nothing else came between.
void Dispatcher::AccountFinished() {
  ObjectOp* ahead = std::exchange(ahead_, nullptr);
  ahead_count_ = 0;
  ObjectOp* first = nullptr;  // in the order of their ends
  if (finished_.load(std::memory_order_relaxed) != nullptr) {
    for (ObjectOp* op = finished_.exchange(nullptr); op != nullptr;) {
      if (op == ahead) ahead = nullptr;
      ObjectOp* const before = std::exchange(op->finished_before_, first);
      first = std::exchange(op, before);
    }
  }
  while (first != nullptr) {
    const std::unique_ptr<ObjectOp> owned(std::exchange(first, first->finished_before_));
    if (owned->went_ahead_ && !owned->told_) TellStart(owned.get());
    AccountOne(owned.get());
    if (--outstanding_ == 0) idle_.notify_all();
  }
  if (ahead != nullptr) TellStart(ahead);
}

void Dispatcher::AccountOne(ObjectOp* op) {
  const TimePoint now = latest_ = std::max(latest_, op->finished_);
  scheduler_.Completed(&op->request_, now);
  activity_.completed += IsBackground(op->kind) ? 0 : 1;
  Account(*op, now);
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
  op->bypasses_ = bypass_;
  const bool goes_ahead = !op->bypasses_ && GoesAhead(op);
  ++outstanding_;
  if (op->bypasses_) {
    bypassed_bytes_ += op->request_.bytes;
    lock.unlock();
    return Start(op);
  }
  if (goes_ahead) {
    StartThese(lock, &op, 1);
    if (ahead_count_ < kMostAhead && !pump_again_) return;
  } else {
    scheduler_.Enqueue(&op->request_, Now());
  }
  const TimePoint wake = Pump(lock, budget);
  lock.unlock();
  ArmOutside(wake);
}

// Nothing more may start because of rates, not of the device: the operations are paced. One that
// stood in line can stand a quarter longer, to share a flush with the next; unless it keeps a slot
// of a full device meanwhile, for which those behind it wait.
void Dispatcher::LetThemWait(ObjectOp** pulled, int count, TimePoint now) {
  const bool has_slot = scheduler_.HasFreeSlot(now);
  const bool landing_frees = scheduler_.LandingFrees(now);
  for (int i = 0; i < count; ++i) {
    if (pulled[i]->patience_ > Duration(0)) continue;  // for its burst
    if (!has_slot && !(landing_frees && IsLargeWrite(*pulled[i]))) continue;
    const Duration waited = now - pulled[i]->request_.arrival;
    pulled[i]->patience_ = std::min(waited / 4, kLongestPatience);
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

int Dispatcher::PullBatch(ObjectOp** quick) {
  const TimePoint now = Now();
  TellPieces(now);
  std::array<ObjectOp*, kBatch> all;
  int count = 0, quick_count = 0;
  pull_wake_ = TimePoint::Max();
  while (count < kBatch) {
    const bool any = count == 0 || scheduler_.queued() > 0;  // else spare the question
    const qos::PullResult pulled = any ? scheduler_.Pull(now) : qos::PullResult{};
    if (pulled.request == nullptr) {
      pull_wake_ = pulled.wake_at.value_or(TimePoint::Max());
      if (quick_count < count) LetThemWait(all.data(), count, now);
      return quick_count;
    }
    auto* op = static_cast<ObjectOp*>(pulled.request->context);
    all[count++] = op;
    if (IsQuick(*op)) {
      quick[quick_count++] = op;
      continue;
    }
    if (const auto patience = scheduler_.BurstPatience(op->request_)) op->patience_ = *patience;
    pulled_.push_back(op);
  }
  pump_again_ = true;
  return quick_count;
}

void Dispatcher::StartThese(Lock& lock, ObjectOp** ops, int count) {
  if (count == 0) return;
  lock.unlock();
  const Dispatcher* const before = std::exchange(starting, this);
  for (int i = 0; i < count; ++i) Start(ops[i]);
  starting = before;
  lock.lock();
}

void Dispatcher::PullAll(Lock& lock, int* budget) {
  while (pump_again_ && *budget > 0) {
    pump_again_ = false;
    std::array<ObjectOp*, kBatch> quick;
    const int count = PullBatch(quick.data());
    *budget -= count;
    StartThese(lock, quick.data(), count);
  }
}

bool Dispatcher::SomebodyWaits() const {
  return scheduler_.queued() > 0 || !pulled_.empty() || pump_again_ || full_ || draining_ ||
         wait_idle_ > 0;
}

TimePoint Dispatcher::Pump(Lock& lock, int budget) {
  for (;;) {
    const TimePoint wake = PumpOnce(lock, budget);
    const bool waits = SomebodyWaits();
    somebody_waits_ = waits;
    if (!waits || finished_.load() == nullptr || starting == this) return wake;
  }
}

// While somebody is in a hurry no thread that has requests to hear or answers to give starts a
// large write, and whoever does looks up after each.
TimePoint Dispatcher::PumpOnce(Lock& lock, int budget) {
  pump_again_ = true;
  if (starting == this) return TimePoint::Max();  // the call that we are in sees the note
  const bool answers = budget <= kPumpBudget;
  PullAll(lock, &budget);
  if (!pumping_) {
    pumping_ = true;
    while (!pulled_.empty() && budget > 0) {
      const bool hurry = scheduler_.InHurry(Now());
      if (hurry && answers && IsLargeWrite(*pulled_.front())) break;
      std::array<ObjectOp*, kBatch> batch;
      int count = 0;
      while (!pulled_.empty() && count < (hurry ? 1 : kBatch)) {
        batch[count++] = pulled_.front();
        pulled_.pop_front();
      }
      budget -= count;
      StartThese(lock, batch.data(), count);
      PullAll(lock, &budget);
    }
    pumping_ = false;
    if (!pulled_.empty()) pull_wake_ = Now();  // the wake-up thread goes on
  }
  NoteFull();
  if (pump_again_) pull_wake_ = Now();  // out of budget
  return std::min(pull_wake_, NextTimer());
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

void Dispatcher::StartWrite(ObjectOp* op, ObjectStore::WriteDone done) {
  if (Status status = op->Check(); !status.ok()) return done(std::move(status));
  WriteHints hints{.patience = op->patience_};
  if (IsLargeWrite(*op) && !op->bypasses_) hints.landed = [this, op] { return Landed(op); };
  store_.Write(op->object, op->offset, op->data, hints, std::move(done));
}

void Dispatcher::Start(ObjectOp* op) {
  auto with_info = [this, op](Result<ObjectInfo> info) {
    ObjectOpResult result;
    if (info.ok()) {
      result.info = std::move(*info);
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
      StartWrite(op, with_info);
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
    case ObjectOpKind::kAllocate:
      store_.Allocate(op->object, op->offset, op->length, op->zeros, with_info);
      return;
    case ObjectOpKind::kGiveBack:
      store_.GiveBack(op->object, op->offset, op->length, with_info);
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

Duration Dispatcher::Landed(ObjectOp* op) {
  Lock lock(mutex_);
  const TimePoint now = Now();
  if (!scheduler_.LandingFrees(now)) return op->patience_;
  scheduler_.Landed(&op->request_, now);
  const Duration patience = scheduler_.BurstPatience(op->request_).value_or(op->patience_);
  const TimePoint wake = Pump(lock, Budget());
  lock.unlock();
  ArmOutside(wake);
  return patience;
}

// Whoever waits for a small read first, so that it does not pay for our accounts, and whoever there
// is when nobody else waits; else the device, which has a free slot, while the answer only has a
// little further to go.
void Dispatcher::Finish(ObjectOp* op, ObjectOpResult result, int budget) {
  ++finishing_;
  op->finished_ = clock_.Now();
  const bool answer_first = op->bypasses_ || IsQuick(*op) || !somebody_waits_.load();
  if (answer_first) {
    op->Done(std::move(result));
    FinishAnswered(op, budget);
  } else {
    FinishThenAnswer(op, std::move(result), budget);
  }
  --finishing_;
}

void Dispatcher::FinishThenAnswer(ObjectOp* op, ObjectOpResult result, int budget) {
  const std::unique_ptr<ObjectOp> owned(op);
  Lock lock(mutex_);
  AccountFinished();
  AccountOne(op);
  const TimePoint wake = Pump(lock, budget);
  lock.unlock();
  ArmOutside(wake);
  op->Done(std::move(result));
  lock.lock();
  if (--outstanding_ == 0) idle_.notify_all();
}

void Dispatcher::FinishAnswered(ObjectOp* op, int budget) {
  if (op->bypasses_) {
    const std::unique_ptr<ObjectOp> owned(op);
    Lock lock(mutex_);
    if (--outstanding_ == 0) idle_.notify_all();
    return;
  }
  const bool went_ahead = op->went_ahead_;
  ObjectOp* before = finished_.load(std::memory_order_relaxed);
  do {
    op->finished_before_ = before;
  } while (!finished_.compare_exchange_weak(before, op));
  if (!somebody_waits_.load()) {
    if (!went_ahead) AccountIfLast();
    return;
  }
  Lock lock(mutex_);
  const TimePoint wake = Pump(lock, budget);
  lock.unlock();
  ArmOutside(wake);
}

// Nothing is on its way any more that could tell of it, and this thread has the time: whoever asks
// next has that much less to wait for.
void Dispatcher::AccountIfLast() {
  if (outstanding_.load(std::memory_order_relaxed) > 1) return;
  const Lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) AccountFinished();
}

void Dispatcher::Ended(ObjectOp* op) {
  Finish(op, {}, BackgroundBudget());
}

bool Dispatcher::ServeOutside(ObjectOp* op) {
  Lock lock(mutex_);
  const TimePoint now = Now();
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

TimePoint Dispatcher::NextTimer() const {
  const TimePoint tick = scheduler_.NextTick();
  return processors_ ? std::min(tick, scheduler_.LookAtProcessors()) : tick;
}

void Dispatcher::LookAtProcessors(TimePoint now) {
  if (!processors_ || now < scheduler_.LookAtProcessors()) return;
  if (const std::optional<Duration> waited = processors_()) {
    scheduler_.ProcessorsWaited(*waited, now);
  } else {
    processors_ = nullptr;
  }
}

TimePoint Dispatcher::Poll() {
  Lock lock(mutex_);
  const TimePoint now = Now();
  LookAtProcessors(now);
  if (now >= scheduler_.NextTick()) {
    scheduler_.Tick(now);
    disk_is_slow_ = scheduler_.Disk().slow;
  }
  return Pump(lock, std::numeric_limits<int>::max());
}

TimePoint Dispatcher::NextWake() {
  Lock lock(mutex_);
  return std::min(pull_wake_, NextTimer());
}

uint64_t Dispatcher::outstanding() {
  Lock lock(mutex_);
  AccountFinished();
  return outstanding_;
}

void Dispatcher::WaitIdle() {
  Lock lock(mutex_);
  ++wait_idle_;
  somebody_waits_ = true;
  AccountFinished();
  idle_.wait(lock, [this] { return outstanding_ == 0; });
  --wait_idle_;
  lock.unlock();
  while (finishing_ > 0) std::this_thread::yield();  // the last one has only to leave
}

}  // namespace weir::osd
