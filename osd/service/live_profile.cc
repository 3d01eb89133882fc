#include "osd/service/live_profile.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>
#include <vector>

#include "common/base/prng.h"
#include "common/base/units.h"
#include "common/disk/block_device.h"

namespace weir::osd {
namespace {

constexpr uint64_t kFillSize = 512 << 10;
constexpr uint64_t kSmallRead = 4 << 10;
constexpr size_t kReadsAlone = 200;
constexpr Duration kAloneLongest = std::chrono::seconds(10);
constexpr InodeId kFileOfNobody{UINT64_MAX};  // inodes are counted from 1 upwards

DiskProfile Summarise(std::vector<uint64_t> windows, Duration window) {
  const double per_second = 1.0 / ToSeconds(window);
  const uint64_t sum = std::accumulate(windows.begin(), windows.end(), uint64_t{0});
  std::sort(windows.begin(), windows.end());
  const double low = static_cast<double>(windows[windows.size() / 20]) * per_second;
  constexpr uint64_t kMiB = 1 << 20;
  DiskProfile profile;
  profile.proposed_bytes_per_s = std::max<uint64_t>(static_cast<uint64_t>(low) / kMiB, 1) * kMiB;
  profile.mean_bytes_per_s = static_cast<uint64_t>(
      static_cast<double>(sum) / static_cast<double>(windows.size()) * per_second);
  return profile;
}

class Measurement {
 public:
  Measurement(BlockDevice& device, ObjectStore& store, Clock& clock,
              const DiskProfileOptions& options)
      : device_(device), store_(store), clock_(clock), options_(options), prng_(options.seed) {}

  Result<DiskProfile> Run() {
    WEIR_RETURN_IF_ERROR(RemoveFile());
    const Status made = NeedsFile() ? MakeFile() : Status();
    if (made.ok()) Issue();
    if (made.ok()) ReadAlone();
    const Status removed = RemoveFile();
    if (!made.ok()) return made;
    if (!error_.ok()) return error_;
    if (!removed.ok()) return removed;
    DiskProfile profile = Summarise(std::move(windows_), options_.window);
    profile.alone_p99 = alone_p99_;
    return profile;
  }

 private:
  [[nodiscard]] bool ReadsFile() const { return device_.is_image(); }
  [[nodiscard]] bool NeedsFile() const { return options_.pattern.write_percent > 0 || ReadsFile(); }

  Status RemoveFile() {
    std::promise<Status> done;
    store_.DeleteInode(kFileOfNobody, 0, [&done](const Result<DeletedObjects>& deleted) {
      done.set_value(deleted.status());
    });
    return done.get_future().get();
  }

  Status MakeFile() {
    const StoreStats stats = store_.Stats();
    constexpr uint64_t kMargin = 4;
    const uint64_t free = stats.capacity_bytes - std::min(stats.capacity_bytes, stats.used_bytes);
    if (free < kMargin * options_.file_bytes) {
      return {ErrorCode::kNoSpace, "only " + FormatSize(free) +
                                       " are free, and measuring writes wants " +
                                       FormatSize(kMargin * options_.file_bytes)};
    }
    std::unique_lock lock(mutex_);
    for (uint64_t at = 0; at < options_.file_bytes && error_.ok(); at += kFillSize) {
      WaitForRoom(lock);
      lock.unlock();
      Write(at, kFillSize, false);
      lock.lock();
    }
    changed_.wait(lock, [this] { return in_flight_ == 0; });
    return error_;
  }

  void Issue() {
    std::unique_lock lock(mutex_);
    windows_.assign(static_cast<size_t>(options_.duration / options_.window), 0);
    start_ = clock_.Now();
    while (clock_.Now() - start_ < options_.duration && error_.ok()) {
      if (in_flight_ == static_cast<int>(options_.pattern.depth)) {
        changed_.wait(lock);
        continue;
      }
      ++in_flight_;
      lock.unlock();
      IssueOne();
      lock.lock();
    }
    changed_.wait(lock, [this] { return in_flight_ == 0; });
  }

  // After the last window, so that it counts for none. Of a disk so slow that it takes too long it
  // says nothing.
  void ReadAlone() {
    std::vector<Duration> took;
    const TimePoint first = clock_.Now();
    for (size_t i = 0; i < kReadsAlone && error_.ok(); ++i) {
      const TimePoint begin = clock_.Now();
      if (begin - first > kAloneLongest) return;
      {
        const std::lock_guard lock(mutex_);
        ++in_flight_;
      }
      Read(kSmallRead, false);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return in_flight_ == 0; });
      took.push_back(clock_.Now() - begin);
    }
    if (took.size() < kReadsAlone) return;
    std::sort(took.begin(), took.end());
    alone_p99_ = took[kReadsAlone * 99 / 100 - 1];
  }

  void Read(uint64_t size, bool goes_on) {
    if (!ReadsFile()) return ReadDevice(std::min(size, device_.size()), goes_on);
    const uint64_t at = InFile(size, goes_on);
    store_.Read({kFileOfNobody, at / kMaxObjectSize}, at % kMaxObjectSize, size,
                [this, size](const Result<ObjectData>& read) { Ended(read.status(), size); });
  }

  void IssueOne() {
    const auto& sizes = options_.pattern.sizes;
    const uint64_t size = sizes[prng_.Uniform(0, sizes.size() - 1)];
    const bool write = prng_.Uniform(0, 99) < options_.pattern.write_percent;
    const bool goes_on = prng_.Uniform(0, 99) < options_.pattern.sequential_percent;
    write ? Write(InFile(size, goes_on), size, true) : Read(size, goes_on);
  }

  // No request crosses from one object to the next.
  uint64_t InFile(uint64_t size, bool goes_on) {
    uint64_t at = file_end_;
    if (at % kMaxObjectSize + size > kMaxObjectSize) at += kMaxObjectSize - at % kMaxObjectSize;
    if (!goes_on) {
      const uint64_t object = prng_.Uniform(0, options_.file_bytes / kMaxObjectSize - 1);
      at = object * kMaxObjectSize + prng_.Uniform(0, kMaxObjectSize / size - 1) * size;
    }
    at %= options_.file_bytes;
    file_end_ = at + size;
    return at;
  }

  void ReadDevice(uint64_t size, bool goes_on) {
    uint64_t at = prng_.Uniform(0, (device_.size() - size) / kBlockSize) * kBlockSize;
    if (goes_on && device_end_ + size <= device_.size()) at = device_end_;
    device_end_ = at + size;
    device_.ReadAsync(at, Buffer::Aligned(size),
                      [this, size](const Status& status) { Ended(status, size); });
  }

  void Write(uint64_t at, uint64_t size, bool counted) {
    store_.Write({kFileOfNobody, at / kMaxObjectSize}, at % kMaxObjectSize, bytes_.Slice(0, size),
                 {}, [this, size, counted](const Result<ObjectInfo>& info) {
                   Ended(info.status(), counted ? size : 0);
                 });
  }

  // Requires the lock; takes a place among those under way.
  void WaitForRoom(std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock, [this] { return in_flight_ < static_cast<int>(options_.pattern.depth); });
    ++in_flight_;
  }

  void Ended(const Status& status, uint64_t bytes) {
    const TimePoint now = clock_.Now();
    const std::lock_guard lock(mutex_);
    if (!status.ok() && error_.ok()) error_ = status;
    const auto window = static_cast<size_t>((now - start_) / options_.window);
    if (bytes > 0 && window < windows_.size()) windows_[window] += bytes;
    --in_flight_;
    changed_.notify_all();
  }

  BlockDevice& device_;
  ObjectStore& store_;
  Clock& clock_;
  const DiskProfileOptions options_;
  const Buffer bytes_ = Buffer::AlignedZeros(kMaxObjectSize);
  Prng prng_;
  uint64_t file_end_ = 0;  // of the last request there
  uint64_t device_end_ = 0;
  TimePoint start_;
  Duration alone_p99_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  int in_flight_ = 0;
  Status error_;
  std::vector<uint64_t> windows_;  // bytes moved in each
};

}  // namespace

Result<DiskProfile> MeasureDisk(BlockDevice& device, ObjectStore& store, Clock& clock,
                                const DiskProfileOptions& options) {
  return Measurement(device, store, clock, options).Run();
}

}  // namespace weir::osd
