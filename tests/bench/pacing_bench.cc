// How late an emulated disk answers: the time between the model's moment and the beginning of the
// answer, under a random mix at a few depths. P99 must stay below 50 us on a quiet machine.
//
//   pacing_bench [ssd|hdd] [seconds]     exit 1 when the bound is missed
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/prng.h"
#include "common/disk/emulated_device.h"
#include "common/disk/mem_device.h"
#include "common/disk/model/hdd.h"
#include "common/disk/model/ssd.h"

namespace weir {
namespace {

constexpr uint64_t kSize = 256 << 20;
constexpr uint64_t kPacingErrorMaxUs = 50;

class Mix {
 public:
  Mix(BlockDevice* device, int depth) : device_(*device), depth_(depth) {}
  uint64_t Run(Duration length) {
    const TimePoint end = SystemClock::Get().Now() + length;
    std::unique_lock lock(mutex_);
    while (SystemClock::Get().Now() < end) {
      changed_.wait(lock, [this] { return in_flight_ < depth_; });
      ++in_flight_;
      lock.unlock();
      Issue();
      lock.lock();
    }
    changed_.wait(lock, [this] { return in_flight_ == 0; });
    return ended_;
  }

 private:
  void Issue() {
    const uint64_t size = prng_.Chance(0.7) ? 4096 : 65536;
    const uint64_t at = prng_.Uniform(0, kSize / size - 1) * size;
    auto done = [this](Status) {
      const std::lock_guard lock(mutex_);
      --in_flight_;
      ++ended_;
      changed_.notify_one();
    };
    if (prng_.Chance(0.7)) {
      device_.ReadAsync(at, block_.Slice(0, size), done);
    } else {
      device_.WriteAsync(at, block_.Slice(0, size), done);
    }
  }

  BlockDevice& device_;
  const int depth_;
  Buffer block_ = Buffer::AlignedZeros(65536);
  Prng prng_{1};
  std::mutex mutex_;
  std::condition_variable changed_;
  int in_flight_ = 0;
  uint64_t ended_ = 0;
};

std::unique_ptr<model::DiskModel> Make(bool hdd, model::EventQueue* events) {
  if (!hdd) return model::MakeSsd(events, model::Ssd200());
  model::HddModel model = model::HddModelOf("sata-7200");
  model.capacity = kSize;
  return model::MakeHdd(events, model, 1, kSize, Prng(1));
}

bool Measure(bool hdd, int depth, Duration length) {
  std::mutex mutex;
  std::vector<int64_t> late_ns;
  auto device = EmulatedDevice::Start(
      std::make_unique<MemDevice>(kSize),
      [hdd](model::EventQueue* events) { return Make(hdd, events); }, SystemClock::Get(),
      {.name = "bench", .rotational = hdd, .flush_host = false, .on_answer = [&](Duration late) {
         const std::lock_guard lock(mutex);
         late_ns.push_back(late.count());
       }});
  const uint64_t ended = Mix(device.get(), depth).Run(length);
  device.reset();
  std::sort(late_ns.begin(), late_ns.end());
  const auto at = [&](double part) {
    return static_cast<double>(
               late_ns[static_cast<size_t>(part * static_cast<double>(late_ns.size() - 1))]) /
           1e3;
  };
  std::printf("%s depth %2d: %8.0f requests/s, late us p50 %.1f p90 %.1f p99 %.1f max %.1f\n",
              hdd ? "hdd" : "ssd", depth, static_cast<double>(ended) / ToSeconds(length), at(.5),
              at(.9), at(.99), at(1));
  return at(.99) < kPacingErrorMaxUs;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 3;
  bool kept = true;
  for (const bool hdd : {false, true}) {
    if (!only.empty() && only != (hdd ? "hdd" : "ssd")) continue;
    for (const int depth : {1, 8, 64}) {
      kept = weir::Measure(hdd, depth, std::chrono::seconds(seconds)) && kept;
    }
  }
  return kept ? 0 : 1;
}
