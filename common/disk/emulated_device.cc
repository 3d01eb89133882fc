#include "common/disk/emulated_device.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/short_turns.h"

namespace weir {
namespace {

// From a sleep that was longer the processor may have to wake up too; few are.
constexpr Duration kDeepSleep = std::chrono::milliseconds(1);
constexpr Duration kEarlyFromDeepSleep = std::chrono::microseconds(150);

// How much later than asked for nine of ten wake-ups come, of those that come lately: tens of
// microseconds where processors sleep, a few where they work, and there spinning would take the
// time of those who wait for the answers.
class Lateness {
 public:
  explicit Lateness(Duration most) : most_(most), usual_(most) {}
  [[nodiscard]] Duration usual() const { return usual_; }
  void Learn(Duration late) {
    usual_ = std::clamp(usual_ + (late > usual_ ? kStep : -kStep / 9), kLeast, most_);
  }

 private:
  static constexpr Duration kStep = std::chrono::microseconds(2);
  static constexpr Duration kLeast = std::chrono::microseconds(3);
  const Duration most_;
  Duration usual_;
};

thread_local bool answering = false;

void SleepPrecisely() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  // Ahead of the work that waits for its answers. Not so the threads that the kernel starts for
  // what a callback writes: they copy for milliseconds.
  (void)RunAheadOfTurns();
}

}  // namespace

EmulatedDevice::EmulatedDevice(std::unique_ptr<BlockDevice> below, const MakeModel& make,
                               Clock& clock, Options options)
    : below_(std::move(below)), clock_(clock), options_(std::move(options)) {
  events_.RunTo(clock_.Now());
  model_ = make(&events_);
}

std::unique_ptr<BlockDevice> EmulatedDevice::Start(std::unique_ptr<BlockDevice> below,
                                                   const MakeModel& make, Clock& clock,
                                                   Options options) {
  auto device = std::make_unique<EmulatedDevice>(std::move(below), make, clock, std::move(options));
  device->thread_ = std::thread([raw = device.get()] { raw->Run(); });
  return device;
}

EmulatedDevice::~EmulatedDevice() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    if (thread_.joinable()) idle_.wait(lock, [this] { return under_way_ == 0; });
  }
  if (thread_.joinable()) thread_.join();
}

EmulatedDevice::RequestPtr EmulatedDevice::Submit(const model::DiskIo& io, Done done) {
  auto request = std::make_shared<Request>();
  request->done = std::move(done);
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
    events_.RunTo(std::max(clock_.Now(), events_.now()));
    model_->Submit(io, [this, request](Duration) {
      request->model_ended = true;
      request->due = events_.now();
      if (request->real_ended) due_.push_back(request);
    });
    const model::DiskModel::Alarm alarm = model_->NextAlarm(events_);
    const bool sooner = std::min(alarm.answer, alarm.progress) < sleeps_until_;
    wakes = sleeps_until_ != kAwake && (!due_.empty() || sooner);
    news_ = true;
  }
  if (wakes) changed_.notify_one();  // not under the lock, which the thread wants at once
  return request;
}

void EmulatedDevice::RealEnded(const RequestPtr& request, Status status) {
  {
    const std::lock_guard lock(mutex_);
    request->status = std::move(status);
    request->real_ended = true;
    if (!request->model_ended) return;
  }
  ++late_;
  Answer(request);
}

void EmulatedDevice::Answer(const RequestPtr& request) {
  if (options_.on_answer) options_.on_answer(clock_.Now() - request->due);
  if (options_.loop == nullptr) return Deliver(*request);
  options_.loop->Post([this, request] { Deliver(*request); });
}

void EmulatedDevice::Deliver(Request& request) {
  answering = true;
  request.done(std::move(request.status));
  answering = false;
  const std::lock_guard lock(mutex_);
  if (--under_way_ > 0) return;
  idle_.notify_all();
  if (stopping_) changed_.notify_all();
}

void EmulatedDevice::DoRead(uint64_t offset, Buffer buffer, Done done) {
  const RequestPtr request =
      Submit({model::DiskIo::Kind::kRead, offset, buffer.size()}, std::move(done));
  below_->ReadAsync(offset, std::move(buffer),
                    [this, request](Status status) { RealEnded(request, std::move(status)); });
}

void EmulatedDevice::DoWrite(uint64_t offset, Buffer buffer, Done done) {
  const RequestPtr request =
      Submit({model::DiskIo::Kind::kWrite, offset, buffer.size()}, std::move(done));
  below_->WriteAsync(offset, std::move(buffer),
                     [this, request](Status status) { RealEnded(request, std::move(status)); });
}

void EmulatedDevice::DoFlush(Done done) {
  const RequestPtr request = Submit({model::DiskIo::Kind::kFlush, 0, 0}, std::move(done));
  if (!options_.flush_host) return RealEnded(request, {});
  below_->FlushAsync([this, request](Status status) { RealEnded(request, std::move(status)); });
}

Status EmulatedDevice::DoReadSync(uint64_t offset, Buffer buffer) {
  if (answering) return below_->Read(offset, std::move(buffer));
  return BlockDevice::DoReadSync(offset, std::move(buffer));
}

TimePoint EmulatedDevice::Advance() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    events_.RunTo(std::max(clock_.Now(), events_.now()));
    if (due_.empty()) return events_.next();
    const std::vector<RequestPtr> due = std::exchange(due_, {});
    lock.unlock();
    for (const RequestPtr& request : due) Answer(request);
    lock.lock();
  }
}

void EmulatedDevice::Run() {
  SleepPrecisely();
  Lateness lateness(std::chrono::microseconds(60));
  for (;;) {
    news_ = false;  // Advance sees all that came before
    Advance();
    std::unique_lock<std::mutex> lock(mutex_);
    if (!due_.empty()) continue;
    if (stopping_ && under_way_ == 0) return;
    const model::DiskModel::Alarm alarm = model_->NextAlarm(events_);
    const TimePoint next = std::min(alarm.answer, alarm.progress);
    if (next == TimePoint::Max()) {
      sleeps_until_ = next;
      changed_.wait(lock);
      sleeps_until_ = kAwake;
      continue;
    }
    const TimePoint now = clock_.Now();
    const bool deep = next - now > kDeepSleep;
    const Duration early = deep ? kEarlyFromDeepSleep : lateness.usual();
    const TimePoint wake = std::min(alarm.answer - early, alarm.progress);
    if (wake > now) {
      sleeps_until_ = next;
      // Clock times are those of CLOCK_MONOTONIC, as steady_clock's.
      changed_.wait_until(lock, std::chrono::steady_clock::time_point{Duration(wake.ns)});
      sleeps_until_ = kAwake;
      const TimePoint woken = clock_.Now();
      if (woken >= wake && !deep) lateness.Learn(woken - wake);  // else somebody woke it
    }
    lock.unlock();
    while (!news_.load(std::memory_order_relaxed) && clock_.Now() < next) {
    }
  }
}

}  // namespace weir
