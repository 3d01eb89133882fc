#include "client/fuse/device_reader.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace weir::client {
namespace {

// A write of the most bytes, with its headers. Its data lies where disks want it.
constexpr size_t kMostData = 1UL << 20;
constexpr size_t kWriteHeaders = sizeof(fuse_in_header) + sizeof(fuse_write_in);
constexpr size_t kBeforeHeaders = kBlockSize - kWriteHeaders;
constexpr size_t kLargestRequest = kWriteHeaders + kMostData;
constexpr size_t kKeptForLater = 16;  // buffers of requests
// A turn takes so much: what it has to send waits for its end.
constexpr int kAtOnce = 8;
constexpr size_t kBytesAtOnce = 64UL << 10;
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
  if (room_.empty()) room_ = Room();
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
  bytes_ = 0;
  for (int taken = 0; taken < kAtOnce && bytes_ < kBytesAtOnce && !inbox_.full(); ++taken) {
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
  const ssize_t got = read(options_.device, room_.data(), room_.size());
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
  bytes_ += bytes;
  if (!Inbox::IsLarge(bytes)) return inbox_.Take({room_.data(), bytes});
  inbox_.TakeLarge(room_.Slice(0, bytes));
  in_use_.push_back(std::move(room_));
  room_ = Room();
}

// What was filled before has its pages.
Buffer DeviceReader::Room() {
  for (auto it = in_use_.begin(); it != in_use_.end(); ++it) {
    if (it->owner().use_count() > 1) continue;
    std::atomic_thread_fence(std::memory_order_acquire);  // after whoever let go of it last
    Buffer free = std::move(*it);
    in_use_.erase(it);
    return free;
  }
  if (in_use_.size() >= kKeptForLater) in_use_.pop_front();
  return Buffer::Aligned(kBeforeHeaders + kLargestRequest).Slice(kBeforeHeaders, kLargestRequest);
}

void DeviceReader::End(int error) {
  Stop();
  options_.on_end(error);
}

}  // namespace weir::client
