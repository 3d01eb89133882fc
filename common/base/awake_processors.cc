#include "common/base/awake_processors.h"

#include <fcntl.h>
#include <unistd.h>

namespace weir {
namespace {

constexpr const char* kDevice = "/dev/cpu_dma_latency";
constexpr int32_t kNoSleep = 0;               // microseconds
constexpr int32_t kAnySleep = 2'000'000'000;  // the kernel's default
constexpr double kFade = 1.0 / 8;             // of what is known of the crowd, each step

}  // namespace

AwakeProcessors::AwakeProcessors(Clock& clock, Keep keep)
    : clock_(clock), keep_(std::move(keep)), waker_(clock, [this] { return Poll(); }) {}

AwakeProcessors::~AwakeProcessors() {
  waker_.Stop();
  KeepAwake(false);
}

bool AwakeProcessors::MayKeepAwake() {
  return access(kDevice, W_OK) == 0;
}

std::unique_ptr<AwakeProcessors> AwakeProcessors::OfThisMachine(Clock& clock) {
  const int device = open(kDevice, O_WRONLY | O_CLOEXEC);
  if (device < 0) return nullptr;
  const auto owned = std::shared_ptr<const int>(new int(device), [](const int* fd) {
    close(*fd);
    delete fd;
  });
  auto made = std::make_unique<AwakeProcessors>(clock, [owned](bool awake) {
    const int32_t latency = awake ? kNoSleep : kAnySleep;
    (void)!write(*owned, &latency, sizeof(latency));  // a wish: without it everything works
  });
  made->Start();
  return made;
}

void AwakeProcessors::Began() {
  beside_.fetch_add(under_way_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  began_.fetch_add(1);
  if (dozes_.load() && dozes_.exchange(false)) waker_.WakeBy(clock_.Now());
}

void AwakeProcessors::KeepAwake(bool awake) {
  if (awake == awake_) return;
  awake_ = awake;
  keep_(awake);
}

TimePoint AwakeProcessors::Poll() {
  const TimePoint now = clock_.Now();
  const uint64_t began = began_ - seen_began_;
  if (began > 0) {
    const uint64_t beside = beside_ - seen_beside_;
    seen_began_ += began;
    seen_beside_ += beside;
    crowd_ += kFade * (static_cast<double>(beside) / static_cast<double>(began) - crowd_);
    last_ = now;
  }
  const bool recent = seen_began_ > 0 && now - last_ < kLinger;
  KeepAwake(recent && crowd_ < (awake_ ? kMany : kFew));
  if (now - last_ < kDoze && seen_began_ > 0) return now + kStep;
  dozes_ = true;
  if (began_ == seen_began_) return TimePoint::Max();
  dozes_ = false;  // one began just then
  return now + kStep;
}

}  // namespace weir
