#include "common/disk/emulated_device.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir {
namespace {

// A wake-up from sleep comes so late at most, nearly always; later from a sleep that was long
// enough for the processor to fall asleep too.
constexpr Duration kSpin = std::chrono::microseconds(60);
constexpr Duration kDeepSpin = std::chrono::microseconds(150);
constexpr Duration kDeepSleep = std::chrono::milliseconds(1);

thread_local bool answering = false;

void SleepPrecisely() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  // Ahead of the work that waits for its answers, where that is allowed. Not so the threads that
  // the kernel starts for what a callback writes: they copy for milliseconds.
  const sched_param priority{.sched_priority = 1};
  (void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
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
  device->thread_ = std::thread([raw = device.get()] { raw->Loop(); });
  return device;
}

EmulatedDevice::~EmulatedDevice() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    if (thread_.joinable()) idle_.wait(lock, [this] { return under_way_ == 0; });
  }
  if (thread_.joinable()) thread_.join();
}

EmulatedDevice::RequestPtr EmulatedDevice::Submit(const model::DiskIo& io, Done done) {
  auto request = std::make_shared<Request>();
  request->done = std::move(done);
  const std::lock_guard lock(mutex_);
  ++under_way_;
  events_.RunTo(std::max(clock_.Now(), events_.now()));
  model_->Submit(io, [this, request](Duration) {
    request->model_ended = true;
    request->due = events_.now();
    if (request->real_ended) due_.push_back(request);
  });
  if (!due_.empty() || events_.next() < sleeps_until_) changed_.notify_one();
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
  Answer(*request);
}

void EmulatedDevice::Answer(Request& request) {
  if (options_.on_answer) options_.on_answer(clock_.Now() - request.due);
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
  std::unique_lock lock(mutex_);
  for (;;) {
    events_.RunTo(std::max(clock_.Now(), events_.now()));
    if (due_.empty()) return events_.next();
    const std::vector<RequestPtr> due = std::exchange(due_, {});
    lock.unlock();
    for (const RequestPtr& request : due) Answer(*request);
    lock.lock();
  }
}

void EmulatedDevice::Loop() {
  SleepPrecisely();
  for (;;) {
    const TimePoint next = Advance();
    std::unique_lock lock(mutex_);
    if (!due_.empty() || events_.next() < next) continue;
    if (stopping_ && under_way_ == 0) return;
    if (next == TimePoint::Max()) {
      sleeps_until_ = next;
      changed_.wait(lock);
    } else if (const Duration left = next - clock_.Now(); left > kSpin) {
      sleeps_until_ = next;
      const Duration spin = left > kDeepSleep ? kDeepSpin : kSpin;
      // Clock times are those of CLOCK_MONOTONIC, as steady_clock's.
      const std::chrono::steady_clock::time_point until{Duration((next - spin).ns)};
      changed_.wait_until(lock, until);
    }
    sleeps_until_ = TimePoint{0};  // awake
  }
}

}  // namespace weir
