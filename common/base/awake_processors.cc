#include "common/base/awake_processors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

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
  Wake();
}

void AwakeProcessors::Took(Duration duration) {
  if (duration > kQuick) return;
  took_ns_.fetch_add(std::max<int64_t>(duration.count(), 1));
  Wake();
}

void AwakeProcessors::Wake() {
  if (dozes_.load() && dozes_.exchange(false)) waker_.WakeBy(clock_.Now());
}

void AwakeProcessors::KeepAwake(bool awake) {
  if (awake == awake_) return;
  awake_ = awake;
  keep_(awake);
}

void AwakeProcessors::LearnBegun(TimePoint now) {
  const uint64_t began = began_ - seen_began_;
  if (began == 0) return;
  const uint64_t beside = beside_ - seen_beside_;
  seen_began_ += began;
  seen_beside_ += beside;
  crowd_ += kFade * (static_cast<double>(beside) / static_cast<double>(began) - crowd_);
  last_begun_ = now;
}

// Little's law: on average as many were under way as time of theirs passed per time.
void AwakeProcessors::LearnTook(TimePoint now) {
  const int64_t took = took_ns_ - seen_took_ns_;
  const Duration passed = std::max(now - last_poll_, kStep);
  seen_took_ns_ += took;
  const double under_way = static_cast<double>(took) / static_cast<double>(passed.count());
  under_way_of_took_ += kFade * (under_way - under_way_of_took_);
  if (took > 0) last_took_ = now;
}

TimePoint AwakeProcessors::Poll() {
  const TimePoint now = clock_.Now();
  LearnBegun(now);
  LearnTook(now);
  last_poll_ = now;
  const Duration since_begun = seen_began_ > 0 ? now - last_begun_ : Duration::max();
  const Duration since_took = seen_took_ns_ > 0 ? now - last_took_ : Duration::max();
  const bool began = since_begun < kLinger;
  const double under_way =
      (began ? 1 + crowd_ : 0) + (since_took < kLinger ? under_way_of_took_ : 0);
  const Duration since = std::min(since_begun, since_took);
  KeepAwake(since < kLinger && under_way - 1 < (awake_ ? kMany : kFew));
  if (since < kDoze) return now + (under_way - 1 < kMany ? kStep : kStepInCrowds);
  dozes_ = true;
  if (began_ == seen_began_ && took_ns_ == seen_took_ns_) return TimePoint::Max();
  dozes_ = false;  // one came just then
  return now + kStep;
}

}  // namespace weir
