#include "tests/crash/schedule.h"

#include <utility>

#include "common/disk/faulty_device.h"
#include "osd/store/store_check.h"
#include "osd/store/superblock.h"
#include "tests/crash/store_harness.h"

namespace weir::osd::testing {
namespace {

constexpr uint64_t kDeviceBytes = 64 << 20;
constexpr size_t kObjects = 12;
constexpr int kLives = 2;
constexpr uint64_t kOperations = 150;  // of a life

// Tiny buffers: flushes, compactions and the move of overlays happen all the time.
StoreOptions SmallOptions() {
  return {.memory_bytes = 1 << 20,
          .deferred_write_max = 8192,
          .deferred_apply_bytes = 64 << 10,
          .kv_write_buffer_bytes = 64 << 10};
}

// Formatted once; every schedule starts from a copy. `full`: with hardly any room left.
std::unique_ptr<MemDevice> Medium(bool full) {
  static const auto make = [](bool fill) {
    auto device = std::make_unique<MemDevice>(kDeviceBytes);
    WEIR_CHECK(MakeStore(*device, {.identity = {.cluster_uuid = "c", .osd_uuid = "o"}}).ok());
    auto store = *OpenStore(*device, SmallOptions());
    Prng prng(1);
    const Buffer ballast = RandomBytes(prng, kMaxObjectSize);
    for (uint64_t i = 0; fill && WriteSync(*store, {InodeId(1000), i}, 0, ballast).ok(); ++i) {
    }
    WEIR_CHECK(store->Close().ok());
    return device;
  };
  static const std::unique_ptr<MemDevice> empty = make(false), filled = make(true);
  return (full ? *filled : *empty).Clone();
}

class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options)
      : options_(options),
        prng_(options.seed),
        device_(std::make_unique<FaultyDevice>(Medium(prng_.Chance(0.1)))),
        history_(kObjects) {}

  std::string Run() {
    for (int life = 0; life < kLives; ++life) {
      const bool last = life + 1 == kLives;
      std::string wrong = Work();
      if (wrong.empty()) wrong = LookBack();
      if (wrong.empty() && last && prng_.Chance(0.3)) wrong = Rot();
      if (!wrong.empty()) return "life " + std::to_string(life) + ", " + wrong;
    }
    return "";
  }
  [[nodiscard]] const History& history() const { return history_; }
  [[nodiscard]] uint64_t operations() const { return operations_; }

 private:
  // Works until the power fails, or to a clean end with every byte accounted for.
  std::string Work() {
    const bool power_fails = prng_.Chance(0.8);
    const bool errors = !power_fails && prng_.Chance(0.5);
    if (power_fails) device_->PowerLossAt(prng_.Uniform(1, 160));
    Result<OpenedStore> opened = OpenWithBug(*device_, SmallOptions(), options_.bug);
    if (!opened.ok()) return power_fails ? "" : opened.status().message();
    ObjectStore& store = *opened->store;
    // Half of the time somebody is in a hurry, and large writes go to the device in pieces.
    if (prng_.Chance(0.5)) store.SetPieceBytes(kBlockSize * prng_.Uniform(1, 16));
    if (errors) device_->FailAt(prng_.Uniform(0, 300), prng_.Uniform(0, 1) * prng_.Uniform(5, 90));
    Operate(store);
    history_.WaitAll();
    const Status closed = store.Close();
    if (power_fails || errors) return "";
    if (!closed.ok()) return "closing: " + closed.message();
    return CompareSpace(std::move(*opened), "at its end");
  }

  void Operate(ObjectStore& store) {
    const uint64_t depth = prng_.Uniform(1, 8);
    // A device that writes late would wait for itself.
    const bool stalls = prng_.Chance(0.2) && options_.bug != Bug::kWrongOrder;
    const uint64_t stall_at = stalls ? prng_.Uniform(0, kOperations) : UINT64_MAX;
    for (uint64_t i = 0; i < kOperations && !device_->powerless(); ++i) {
      history_.WaitBelow(depth);
      if (i == stall_at) {
        device_->Stall();
        history_.Issue(store, prng_);
        device_->ReleaseStalled();
        ++operations_;
        continue;
      }
      history_.Issue(store, prng_);
      ++operations_;
    }
  }

  // The power comes back: the checker, the space, the content.
  std::string LookBack() {
    device_->ClearFaults();
    device_->PowerOn(prng_.Next());
    device_ = std::make_unique<FaultyDevice>(device_->CloneMedium());
    const Result<CheckReport> report = CheckStore(*device_, {.deep = true});
    if (!report.ok()) return report.status().message();
    if (!report->findings.clean()) return "the checker says " + ToText(*report);
    // A block that overlays share goes when the last of them gets a place of its own: so none does
    // before we have looked at the space.
    StoreOptions patient = SmallOptions();
    patient.deferred_apply_bytes = 2 << 20;
    patient.kv_write_buffer_bytes = 8 << 20;  // which bounds that
    Result<OpenedStore> opened = OpenWithBug(*device_, patient, options_.bug);
    if (!opened.ok()) return opened.status().message();
    ObjectStore& store = *opened->store;
    const StoreStats stats = store.Stats();
    if (stats.used_bytes != report->Fact("used_bytes")) {
      return Differ("at its start", stats.used_bytes, report->Fact("used_bytes"));
    }
    std::string wrong = history_.Check(store, true);
    if (!wrong.empty()) return wrong;
    if (const Status closed = store.Close(); !closed.ok()) return closed.message();
    return CompareSpace(std::move(*opened), "after a look");
  }

  // What a closed store takes for used is what its records name. It goes before the checker comes:
  // its RocksDB may still be flushing or compacting, and files that it removes while they are read
  // look like damage.
  std::string CompareSpace(OpenedStore opened, const std::string& when) {
    const uint64_t used = opened.store->Stats().used_bytes;
    opened.store = nullptr;
    const Result<CheckReport> report = CheckStore(*device_, {});
    if (!report.ok()) return report.status().message();
    if (used == report->Fact("used_bytes")) return "";
    return Differ(when, used, report->Fact("used_bytes"));
  }

  static std::string Differ(const std::string& when, uint64_t store, uint64_t checker) {
    return "space " + when + ": " + std::to_string(store) + " bytes are taken for used, the " +
           "checker finds " + std::to_string(checker);
  }

  // A bit of some block of the data region flips: reads say so or are right.
  std::string Rot() {
    const Result<Superblock> super = LoadSuperblock(*device_);
    if (!super.ok()) return super.status().message();
    const Result<CheckReport> before = CheckStore(*device_, {});
    const uint64_t offset = super->data_offset;
    // The first places are the most likely to be in use.
    const uint64_t span = std::max<uint64_t>(before->Fact("used_bytes") * 2, kBlockSize);
    for (int i = 0; i < 8; ++i) {
      device_->FlipBits(offset + prng_.Uniform(0, std::min(span, super->data_bytes) - 1),
                        static_cast<uint8_t>(1u << prng_.Uniform(0, 7)));
    }
    Result<OpenedStore> opened = OpenWithBug(*device_, SmallOptions(), options_.bug);
    if (!opened.ok()) return opened.status().message();
    return history_.CheckRotten(*opened->store);
  }

  const ScheduleOptions options_;
  Prng prng_;
  std::unique_ptr<FaultyDevice> device_;
  History history_;
  uint64_t operations_ = 0;
};

}  // namespace

ScheduleOutcome RunSchedule(const ScheduleOptions& options) {
  Schedule schedule(options);
  ScheduleOutcome outcome;
  outcome.wrong = schedule.Run();
  outcome.operations = schedule.operations();
  outcome.acknowledged = schedule.history().acknowledged();
  return outcome;
}

}  // namespace weir::osd::testing
