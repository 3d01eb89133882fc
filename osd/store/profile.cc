// Measuring what a device sustains (AQuA section 5.3): a mix of sizes, reads and writes at a fixed
// depth, bytes per window, and a low percentile of the windows as the promise.
#include "osd/store/profile.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>

#include "common/base/log.h"
#include "common/base/prng.h"
#include "common/kv/rocks_kv_store.h"
#include "osd/store/superblock.h"

namespace weir::osd {
namespace {

constexpr int kDepth = 16;
constexpr int kWindows = 20;
constexpr Duration kWindow = std::chrono::milliseconds(50);
constexpr std::array<uint32_t, 3> kSizes = {512 << 10, 64 << 10, 4 << 10};
// Of windows that somebody else stole the machine from, one may show nothing at all.
constexpr int kRounds = 3;

class Profiler {
 public:
  Profiler(BlockDevice& device, uint64_t offset, uint64_t length)
      : device_(device), offset_(offset), length_(length), start_(Now()) {}

  Result<DeviceProfile> Run() {
    std::unique_lock lock(mutex_);
    while (Now() - start_ < kWindow * kWindows && failure_.ok()) {
      if (in_flight_ < kDepth) {
        ++in_flight_;
        lock.unlock();
        Issue();
        lock.lock();
      } else {
        changed_.wait(lock);
      }
    }
    changed_.wait(lock, [this] { return in_flight_ == 0; });
    WEIR_RETURN_IF_ERROR(failure_);
    // The first windows warm up caches and the last is cut off.
    return ProfileOf({bytes_.begin() + 2, bytes_.end()}, kWindow);
  }

 private:
  static TimePoint Now() { return SystemClock::Get().Now(); }

  void Issue() {
    const uint32_t size = kSizes[prng_.Uniform(0, kSizes.size() - 1)];
    const uint64_t slots = length_ / size;
    const uint64_t at = offset_ + prng_.Uniform(0, slots - 1) * size;
    auto done = [this, size](Status status) { Done(size, std::move(status)); };
    if (prng_.Chance(0.5)) {
      device_.ReadAsync(at, Buffer::Aligned(size), done);
    } else {
      device_.WriteAsync(at, zeros_.Slice(0, size), done);
    }
  }

  void Done(uint32_t size, Status status) {
    std::lock_guard lock(mutex_);
    const auto window = static_cast<size_t>((Now() - start_) / kWindow);
    if (window < bytes_.size()) bytes_[window] += size;
    if (!status.ok()) failure_ = std::move(status);
    --in_flight_;
    changed_.notify_one();
  }

  BlockDevice& device_;
  const uint64_t offset_, length_;
  const TimePoint start_;
  const Buffer zeros_ = Buffer::AlignedZeros(kSizes[0]);
  Prng prng_{1};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<uint64_t, kWindows> bytes_{};
  int in_flight_ = 0;
  Status failure_;
};

}  // namespace

DeviceProfile ProfileOf(std::vector<uint64_t> windows, Duration window) {
  std::sort(windows.begin(), windows.end());
  const uint64_t low = windows[windows.size() / 20], median = windows[windows.size() / 2];
  const uint64_t rate = low * static_cast<uint64_t>(std::chrono::seconds(1) / window);
  return {std::max<uint64_t>(rate >> 20 << 20, 1 << 20), low >= median / 4};
}

Result<uint64_t> ProfileDevice(BlockDevice& device) {
  WEIR_ASSIGN_OR_RETURN(const Superblock super, LoadSuperblock(device));
  {
    WEIR_ASSIGN_OR_RETURN(auto kv, OpenRawKvStore(device, {super.kv_offset, super.kv_bytes}, {}));
    auto it = kv->NewIterator();
    it->Seek("O");
    if (it->Valid()) {
      return {ErrorCode::kExists,
              device.name() + ": holds objects; only an empty OSD can be measured by writing"};
    }
    WEIR_RETURN_IF_ERROR(it->status());
  }
  DeviceProfile best{0, false};
  for (int round = 0; round < kRounds && !best.steady; ++round) {
    Profiler profiler(device, super.data_offset, super.data_bytes);
    WEIR_ASSIGN_OR_RETURN(const DeviceProfile profile, profiler.Run());
    best = {std::max(best.rate, profile.rate), profile.steady};
  }
  if (!best.steady) {
    WEIR_LOG_WARN(
        "{}: its speed varied so much that no more than {} MiB/s can be promised; if the machine "
        "was "
        "busy just now, measure again when it is not (osdctl profile) and set the rate (osdctl osd "
        "set "
        "--token-rate)",
        device.name(), best.rate >> 20);
  }
  return best.rate;
}

}  // namespace weir::osd
