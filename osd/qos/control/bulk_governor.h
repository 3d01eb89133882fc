// BulkGovernor: how fast bulk goes beside a class with a latency bound, while the device is guarded
// (device/device.h). It stands outside the pipeline: what it is told was measured where the user of
// the class waits, and its answer is one number, Scheduler::SetBulkCap.
//
// The bound is a setpoint (README.md says why it is this one). Of each class the quantile that its
// contract names is measured over `kSamples` requests, or fewer when so many missed the target that
// the rest cannot change it. Then the rate of bulk is multiplied by
//
//   sqrt(target / quantile), within [kDown, kUp]
//   target = max(kTimesAlone * alone, kPartOfBound * bound), at most kMostOfBound * bound
//
// It starts at what bulk had, goes when it holds nobody, and is never below 1/kDeepest of what bulk
// had. Where kFutile of that leave the quantile as it was, bulk is let go for kRest, and View
// tells.
//
// Threads: the scheduler's owner. Pure. Units: bytes per second.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/service_contract.h"

namespace weir::osd::qos {

class BulkGovernor {
 public:
  static constexpr size_t kSamples = 300;
  static constexpr double kTimesAlone = 2.5;
  static constexpr double kPartOfBound = 1.0 / 16;
  static constexpr double kMostOfBound = 0.8;
  static constexpr double kDown = 0.9;
  static constexpr double kDownBroken = 0.75;  // the bound itself is not kept
  static constexpr double kUp = 1.05;
  static constexpr double kUnused = 1.5;
  static constexpr double kDeepest = 16;
  static constexpr double kHelped = 0.8;  // of the quantile before
  static constexpr Duration kEvery = std::chrono::milliseconds(100);
  static constexpr Duration kFutile = std::chrono::seconds(2);
  static constexpr Duration kRest = std::chrono::seconds(10);

  struct Bulk {
    uint64_t bytes = 0;    // that went to the device, since whenever: a sum that grows
    bool guarded = false;  // the rate is in force
  };
  // A request of a class with that bound took its user so long.
  void Waited(ClassId id, const ServiceContract& contract, Duration waited, const Bulk& bulk,
              TimePoint now);
  void Forget(ClassId id) { meters_.erase(id); }
  // 0: as fast as it can.
  [[nodiscard]] uint64_t rate() const { return rate_ ? static_cast<uint64_t>(*rate_) : 0; }

  struct View {
    Duration quantile{0};  // 0: not measured yet
    Duration target{0};
    bool futile = false;  // to hold bulk back did not lower it
  };
  [[nodiscard]] View Of(ClassId id) const;

 private:
  struct Meter {
    Duration bound{0};
    double part = 0;
    TimePoint last;  // of the samples
    TimePoint since;
    uint64_t bulk_bytes = 0;  // at `since`
    size_t above = 0;         // of the samples, the target
    std::vector<Duration> samples;
    double quantile = 0;  // ns, of the last window
    double alone = 0;     // ns; 0: not known

    [[nodiscard]] double Target() const;
    [[nodiscard]] double Error() const { return quantile / Target(); }
  };
  void NoteServed(uint64_t bulk_bytes, TimePoint now);
  static void Learn(Meter* meter, bool no_bulk);
  void Step(ClassId id, Meter* meter, TimePoint now);
  void LetGo();

  std::map<ClassId, Meter> meters_;
  TimePoint counted_at_;
  uint64_t counted_ = 0;        // bytes of bulk by then
  double served_ = 0;           // bytes per second of bulk; falls slowly
  double most_ = 0;             // of that, since bulk was let go last
  std::optional<double> rate_;  // empty: it is not held back
  double before_ = 0;           // the quantile when it was not yet
  std::optional<TimePoint> deepest_since_;
  TimePoint rests_until_;
  std::optional<ClassId> futile_;  // for whom it was
};

}  // namespace weir::osd::qos
