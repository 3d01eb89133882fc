// BoundSetpoint: how much pressure on the processors the latency bounds of classes leave room for.
// The governor (bulk_governor.h) keeps the pressure at what this says.
//
// Of each class with a bound the quantile that its contract names is measured where its user waits,
// over `kSamples` requests; over fewer when the target is missed already, or when they took kStale
// and are enough for that quantile. The target is `kPartOfBound` of the bound (README.md says why
// not the bound). The class that misses most, its error being quantile / target, decides:
//
//   pressure *= 1 / error, at least kDown, once in kSettle; at most kUp where there is slack;
//   at once the least where the bound is broken
//
// within [least, kMost]. It begins at the least, what the operator chose, and does so again when a
// class begins to speak or has another bound. It grows once in kEvery, only while bulk is held back
// by it, so that nothing winds up, and kClean after the last miss: the late ones come in bursts, so
// that most windows are better than the whole.
//
// Threads: the scheduler's owner. Pure. Units: part of the time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/service_contract.h"

namespace weir::osd::qos {

class BoundSetpoint {
 public:
  static constexpr size_t kSamples = 300;
  static constexpr double kPartOfBound = 1.0 / 32;
  static constexpr double kDown = 0.7;
  static constexpr double kUp = 1.05;
  static constexpr double kMost = 0.99;                                // BulkGovernor::kAny
  static constexpr Duration kEvery = std::chrono::milliseconds(100);   // windows last so long
  static constexpr Duration kStale = std::chrono::seconds(1);          // and no longer
  static constexpr Duration kSettle = std::chrono::milliseconds(400);  // till a step is seen
  static constexpr Duration kClean = std::chrono::seconds(2);
  static constexpr Duration kSilent = std::chrono::seconds(5);  // has no say any more

  // What an operator chose, a part of the time; 1: bulk is never held back.
  void SetLeast(double pressure) { least_ = pressure_ = pressure; }
  // A request of a class with that bound took its user so long. `held`: bulk is held back now, and
  // there is about as much pressure as may be.
  void Waited(ClassId id, const ServiceContract& contract, Duration waited, bool held,
              TimePoint now);
  // It has no bound any more.
  void Forget(ClassId id);
  [[nodiscard]] double pressure() const { return pressure_; }

  struct View {
    Duration quantile{0};  // 0: not measured yet
    Duration target{0};
  };
  // Nothing where nobody is ever held back, and of a class that has been silent.
  [[nodiscard]] View Of(ClassId id, TimePoint now) const;

 private:
  struct Meter {
    ServiceContract contract;
    TimePoint since;
    TimePoint heard_at;
    size_t above = 0;   // of the samples, the target
    size_t broken = 0;  // the bound
    std::vector<Duration> samples;
    Duration quantile{0};  // of the last window
    TimePoint measured_at;

    [[nodiscard]] Duration Target() const;
    [[nodiscard]] double Error() const { return ToSeconds(quantile) / ToSeconds(Target()); }
    [[nodiscard]] bool Exceeds(size_t late) const;
    [[nodiscard]] bool IsWhole(TimePoint now) const;
    void Measure(TimePoint now);
  };
  void Step(const Meter& meter, bool broken, bool held, TimePoint now);

  std::map<ClassId, Meter> meters_;
  double least_ = 1;
  double pressure_ = 1;
  TimePoint missed_at_;
  TimePoint lowered_at_;
  TimePoint raised_at_;
};

}  // namespace weir::osd::qos
