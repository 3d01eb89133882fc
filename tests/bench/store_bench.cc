// store_bench DEVICE: formats DEVICE (which must be one to lose!) and measures the object store on
// it: durable writes, reads, with the processor time per operation. Prints one line per workload.
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "common/base/prng.h"
#include "common/base/time.h"
#include "common/disk/block_device.h"
#include "osd/store/object_store.h"
#include "osd/store/profile.h"

namespace weir::osd {
namespace {

constexpr int kObjects = 128;

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Keeps `depth` operations under way until `count` are done or a second is over.
class Loop {
 public:
  template <typename Start>
  void Run(const char* name, int count, int depth, uint64_t bytes, Start start) {
    const TimePoint begin = SystemClock::Get().Now();
    const double cpu = CpuSeconds();
    int done = 0;
    for (; done < count && SystemClock::Get().Now() - begin < std::chrono::seconds(1); ++done) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return in_flight_ < depth; });
      ++in_flight_;
      lock.unlock();
      start(done);
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_flight_ == 0; });
    const double seconds = ToSeconds(SystemClock::Get().Now() - begin);
    std::printf("%-28s depth %2d: %8.0f op/s %8.1f MiB/s %6.1f us CPU/op\n", name, depth,
                done / seconds, done * static_cast<double>(bytes) / seconds / (1 << 20),
                (CpuSeconds() - cpu) / done * 1e6);
  }
  void Done(const Status& status) {
    if (!status.ok()) {
      std::fprintf(stderr, "failed: %s\n", status.message().c_str());
      std::exit(1);
    }
    std::lock_guard lock(mutex_);
    --in_flight_;
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int in_flight_ = 0;
};

int Explain(const Status& status) {
  std::fprintf(stderr, "store_bench: %s\n", status.message().c_str());
  return 1;
}

int Main(const char* path, uint64_t deferred_max) {
  Result<std::unique_ptr<BlockDevice>> device = OpenDevice(path, {});
  if (!device.ok()) return Explain(device.status());
  if (const Status status = MakeStore(**device, {.force = true}); !status.ok()) {
    return Explain(status);
  }
  if (const Result<uint64_t> rate = ProfileDevice(**device); rate.ok()) {
    std::printf("profile: %llu MiB/s\n", static_cast<unsigned long long>(*rate >> 20));
  }
  Result<std::unique_ptr<ObjectStore>> store =
      OpenStore(**device, {.deferred_write_max = deferred_max});
  if (!store.ok()) return Explain(store.status());
  ObjectStore& s = **store;
  Loop loop;
  Prng prng(1);
  const Buffer big = Buffer::AlignedZeros(1 << 20), small = Buffer::AlignedZeros(4096);
  const auto id = [](uint64_t i) { return ObjectId{InodeId(5), i % kObjects}; };
  const auto write_done = [&](Result<ObjectInfo> info) { loop.Done(info.status()); };
  const auto read_done = [&](const Result<ObjectData>& read) { loop.Done(read.status()); };
  const auto write_big = [&](int i) {
    s.Write(id(i / 4), static_cast<uint64_t>(i % 4) << 20, big, {}, write_done);
  };
  loop.Run("1 MiB write", kObjects * 4, 8, 1 << 20, write_big);
  loop.Run("1 MiB overwrite", kObjects * 4, 8, 1 << 20, write_big);
  loop.Run("1 MiB read", kObjects * 4, 8, 1 << 20, [&](int i) {
    s.Read(id(i / 4), static_cast<uint64_t>(i % 4) << 20, 1 << 20, read_done);
  });
  for (const int depth : {1, 16}) {
    loop.Run("4 KiB random read", 1'000'000, depth, 4096,
             [&](int) { s.Read(id(prng.Next()), prng.Uniform(0, 1023) * 4096, 4096, read_done); });
  }
  for (const int depth : {1, 16, 64}) {
    loop.Run("4 KiB random durable write", 1'000'000, depth, 4096, [&](int) {
      s.Write(id(prng.Next()), prng.Uniform(0, 1023) * 4096, small, {}, write_done);
    });
  }
  const StoreStats stats = s.Stats();
  std::printf("commits %llu, operations in them %llu, flushes %llu\n",
              static_cast<unsigned long long>(stats.commits),
              static_cast<unsigned long long>(stats.committed_ops),
              static_cast<unsigned long long>((*device)->counters().flushes));
  return s.Close().ok() ? 0 : 1;
}

}  // namespace
}  // namespace weir::osd

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: store_bench DEVICE [DEFERRED_WRITE_MAX]  (DEVICE is formatted)\n");
    return 2;
  }
  return weir::osd::Main(argv[1], argc > 2 ? std::stoull(argv[2]) : 8192);
}
