#include "osd/service/live_profile.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <vector>

#include "common/base/prng.h"
#include "common/disk/block_device.h"

namespace weir::osd {
namespace {

constexpr uint64_t kSizes[] = {512 << 10, 64 << 10, 4 << 10};

// What the completions fill in and the issuing thread waits for.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  int in_flight = 0;
  Status error;
  std::vector<uint64_t> windows;  // bytes read in each
};

DiskProfile Summarise(std::vector<uint64_t> windows, Duration window) {
  const double per_second = 1.0 / ToSeconds(window);
  const uint64_t sum = std::accumulate(windows.begin(), windows.end(), uint64_t{0});
  std::sort(windows.begin(), windows.end());
  const double low = static_cast<double>(windows[windows.size() / 20]) * per_second;
  constexpr uint64_t kMiB = 1 << 20;
  DiskProfile profile;
  profile.proposed_bytes_per_s = static_cast<uint64_t>(low) / kMiB * kMiB;
  profile.mean_bytes_per_s = static_cast<uint64_t>(
      static_cast<double>(sum) / static_cast<double>(windows.size()) * per_second);
  return profile;
}

}  // namespace

Result<DiskProfile> MeasureReads(BlockDevice& device, Clock& clock,
                                 const ReadProfileOptions& options) {
  Progress progress;
  progress.windows.resize(static_cast<size_t>(options.duration / options.window));
  Prng prng(options.seed);
  const TimePoint start = clock.Now();
  const TimePoint end = start + options.duration;

  std::unique_lock lock(progress.mutex);
  while (clock.Now() < end && progress.error.ok()) {
    if (progress.in_flight == options.depth) {
      progress.changed.wait(lock);
      continue;
    }
    const uint64_t size = std::min(kSizes[prng.Uniform(0, 2)], device.size());
    const uint64_t offset = prng.Uniform(0, (device.size() - size) / kBlockSize) * kBlockSize;
    ++progress.in_flight;
    lock.unlock();
    device.ReadAsync(offset, Buffer::Aligned(size), [&, size](Status status) {
      const Duration at = clock.Now() - start;
      std::lock_guard done(progress.mutex);
      --progress.in_flight;
      if (!status.ok()) progress.error = std::move(status);
      const auto window = static_cast<size_t>(at / options.window);
      if (window < progress.windows.size()) progress.windows[window] += size;
      progress.changed.notify_all();
    });
    lock.lock();
  }
  progress.changed.wait(lock, [&] { return progress.in_flight == 0; });
  if (!progress.error.ok()) return progress.error;
  return Summarise(std::move(progress.windows), options.window);
}

}  // namespace weir::osd
