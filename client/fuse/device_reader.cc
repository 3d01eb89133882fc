#include "client/fuse/device_reader.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace weir::client {
namespace {

// A write of the most bytes, with its headers.
constexpr size_t kLargestRequest = (1UL << 20) + 4096;
constexpr int kAtOnce = 8;  // a turn
// Busy: it has hardly slept for so long.
constexpr Duration kBusyFor = std::chrono::milliseconds(10);
constexpr int kSleepShare = 8;
// Who has not been called for so long leaves.
constexpr Duration kHelpsFor = std::chrono::milliseconds(20);

}  // namespace

void DeviceReader::Start(bool helps) {
  if (stopped_) return;
  inbox_.Enter();
  helps_ = helps;
  looked_at_ = SystemClock::Get().Now();
  waited_ = reactor_.waited();
  if (!helps) BeginToWatch();
}

void DeviceReader::BeginToWatch() {
  if (stopped_ || watching_) return;
  if (buffer_ == nullptr) buffer_ = FreeBuffer();
  watching_ = true;
  reactor_.WatchShared(options_.device, this);
}

void DeviceReader::Stop() {
  stopped_ = true;
  if (std::exchange(watching_, false)) reactor_.Unwatch(this);
  inbox_.Empty();
}

void DeviceReader::Help() {
  called_at_ = SystemClock::Get().Now().ns;
  if (!called_.exchange(true)) reactor_.Post([this] { BeginToWatch(); });
}

void DeviceReader::OnReadable() {
  for (int taken = 0; taken < kAtOnce && !inbox_.full(); ++taken) {
    const Taken one = TakeOne();
    if (one == Taken::kEnd) return;
    if (one == Taken::kNothing) {
      LeaveIfIdle();
      break;
    }
  }
  CallIfBusy();
}

// Having found nothing, so that no request is left that has woken nobody else.
void DeviceReader::LeaveIfIdle() {
  if (!helps_ || SystemClock::Get().Now() - TimePoint{called_at_} < kHelpsFor) return;
  watching_ = false;
  reactor_.Unwatch(this);
  inbox_.Rest();
  called_ = false;
}

void DeviceReader::CallIfBusy() {
  if (options_.next == nullptr) return;
  if (inbox_.holds_large()) return options_.next->Help();
  const TimePoint now = SystemClock::Get().Now();
  const Duration passed = now - looked_at_;
  if (passed < kBusyFor) return;
  const Duration slept = reactor_.waited() - std::exchange(waited_, reactor_.waited());
  looked_at_ = now;
  if (slept < passed / kSleepShare) options_.next->Help();
}

DeviceReader::Taken DeviceReader::TakeOne() {
  const ssize_t got = read(options_.device, buffer_.get(), kLargestRequest);
  if (got > 0) {
    Give(static_cast<size_t>(got));
    return watching_ ? Taken::kOne : Taken::kEnd;
  }
  // ENOENT: its process was killed before it was taken off.
  if (got < 0 && (errno == ENOENT || errno == EINTR)) return Taken::kOne;
  if (got < 0 && errno == EAGAIN) return Taken::kNothing;
  End(got == 0 ? ENODEV : errno);
  return Taken::kEnd;
}

void DeviceReader::Give(size_t bytes) {
  if (!Inbox::IsLarge(bytes)) return inbox_.Take({buffer_.get(), bytes});
  // Its buffer comes back with the end of the handler.
  auto held = std::make_shared<Buffer>(std::exchange(buffer_, FreeBuffer()));
  inbox_.TakeLarge({held->get(), bytes}, [this, held] { free_.push_back(std::move(*held)); });
}

DeviceReader::Buffer DeviceReader::FreeBuffer() {
  if (free_.empty()) return Buffer(new uint8_t[kLargestRequest]);  // pages as they are used
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void DeviceReader::End(int error) {
  Stop();
  options_.on_end(error);
}

}  // namespace weir::client
