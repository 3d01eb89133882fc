// BulkGovernor: how fast bulk goes while the device is guarded (device/device.h), and processors
// are what the guarded class waits for. It stands outside the pipeline: it measures, and its answer
// is one number, Scheduler::SetBulkCap.
//
// The pressure on the processors (PSI: the part of the time in which somebody who could run did
// not) is kept at what the bounds leave room for (bound_setpoint.h). Every `kEvery` the rate is
// multiplied by
//
//   chosen / pressure, within [kDown, kUp]
//
// from what bulk had, at once, and it goes when nobody would be held back by it. Under kAny it
// grows to a little more than bulk takes, so that it does not come in bursts.
//
// The pressure of others is not ours to relieve: where more than kRemains of what is typical
// without holding stays although bulk has been held to 1/kDeepest of what it had, for kFutile, it
// is let go for kRest. Typical is the mean over the last second or so in which bulk went as it
// liked, by what it was served.
//
// Threads: the scheduler's owner. Pure. Units: bytes, seconds of waiting per second.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/time.h"

namespace weir::osd::qos {

class BulkGovernor {
 public:
  static constexpr double kDown = 0.75;
  static constexpr double kUp = 1.08;
  static constexpr double kDeepest = 16;
  static constexpr double kAny = 0.99;
  // Over what they took lately at most: of a rate they take about half, as requests come in bursts.
  static constexpr double kHeadroom = 2;
  static constexpr double kUnused = 4;
  static constexpr double kPeakStays = 0.9;  // of a peak, each time
  static constexpr double kLookStays = 0.9;  // of a look's weight in what is typical, each time
  static constexpr double kRemains = 0.75;
  static constexpr Duration kEvery = std::chrono::milliseconds(100);
  static constexpr Duration kFutile = std::chrono::seconds(2);
  static constexpr Duration kRest = std::chrono::seconds(10);

  // The part of the time; 1: whatever it is, nobody is held back; kAny: soon to no less than they
  // take, so that they do not come in bursts.
  void Choose(double pressure);
  // The device is guarded until then.
  void Guarded(TimePoint until, TimePoint now);
  // When Look is wanted; Max while the device is not guarded.
  [[nodiscard]] TimePoint LookAt() const { return look_at_; }
  // How long somebody has waited for a processor, and how many bytes of bulk have gone to the
  // device, since whenever: sums that grow.
  void Look(Duration waited, uint64_t bulk_bytes, TimePoint now);

  // That there is lately; the part of the time.
  [[nodiscard]] double pressure() const { return pressure_; }
  // Bulk was let go since to hold it did not help.
  [[nodiscard]] bool Rests(TimePoint now) const { return now < rests_until_; }
  // Bytes per second; 0: as fast as they can.
  [[nodiscard]] uint64_t rate() const { return rate_ ? static_cast<uint64_t>(*rate_) : 0; }

 private:
  [[nodiscard]] bool Acts(TimePoint now) const { return now < guarded_until_; }
  void Follow(double pressure, double served, TimePoint now);
  void NoteUnheld(double pressure, double served);
  void LetGo();
  [[nodiscard]] bool IsFutile(TimePoint now);

  TimePoint guarded_until_;
  TimePoint look_at_ = TimePoint::Max();
  std::optional<TimePoint> looked_at_;
  Duration waited_{0};
  uint64_t bulk_bytes_ = 0;
  double chosen_ = 1;
  double pressure_ = 0;       // smoothed
  bool first_ = true;         // nothing is known since the device is guarded
  double unheld_ = 0;         // typical lately while bulk was not held and had something to do
  double unheld_served_ = 0;  // its weight: bytes per second; 0: not known
  double most_ = 0;           // bytes per second that bulk had lately before it was held, or since
  double peak_ = 0;           // the same, lately
  std::optional<double> rate_;  // empty: it is not held back
  std::optional<TimePoint> deepest_since_;
  TimePoint rests_until_;
};

}  // namespace weir::osd::qos
