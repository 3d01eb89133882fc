// Measuring what a device sustains (AQuA section 5.3): a mix of sizes, reads and writes at a fixed
// depth, bytes per window, and a low percentile of the windows as the promise.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "common/base/prng.h"
#include "common/base/time.h"
#include "common/disk/block_device.h"
#include "common/kv/rocks_kv_store.h"
#include "osd/store/superblock.h"

namespace weir::osd {
namespace {

constexpr int kDepth = 16;
constexpr int kWindows = 20;
constexpr Duration kWindow = std::chrono::milliseconds(50);
constexpr std::array<uint32_t, 3> kSizes = {512 << 10, 64 << 10, 4 << 10};

class Profiler {
 public:
  Profiler(BlockDevice& device, uint64_t offset, uint64_t length)
      : device_(device), offset_(offset), length_(length), start_(Now()) {}

  Result<uint64_t> Run() {
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
    std::vector<uint64_t> windows(bytes_.begin() + 2, bytes_.end());
    std::sort(windows.begin(), windows.end());
    const uint64_t low = windows[windows.size() / 20];
    const uint64_t rate = low * static_cast<uint64_t>(std::chrono::seconds(1) / kWindow);
    return std::max<uint64_t>(rate >> 20 << 20, 1 << 20);
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
  Profiler profiler(device, super.data_offset, super.data_bytes);
  return profiler.Run();
}

}  // namespace weir::osd
