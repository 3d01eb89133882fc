// ServiceMonitor: what measurement-based admission wants to know about one OSD (Stonehenge §4.2.2;
// RULES.md §4.4), over a sliding window (24 hours in the paper):
//
//   P_service    distribution of (actual delay) / (worst-case delay by (10)) over the requests of
//                latency-bound classes; Q_service is its inverse
//   Q_IOrate     quantiles of the combined requests per second of throughput-bound classes, one
//                sample a second
//
// The window is kept as two halves; the measurements are stable when both have enough requests and
// their P_service differ by no more than 0.1 (Kolmogorov-Smirnov, A22). After a control step that
// moves rates or weights, Restart forgets, so that nothing is admitted on what was before (C15).
//
// A window may begin small: halves of `first_half`, then twice as long each time, what both held
// being the older one from then on, until they are halves of the window. So a young system knows
// what there is to know.
//
// DelayClock is the clock of a bound (A19): a request's delay counts from the moment it is among
// the first max_pending + 1 of its class that are not done.
//
// Cost: O(1) per request. Threads: the owner's. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/contract_admission.h"

namespace weir::osd::qos {

class DelayClock {
 public:
  explicit DelayClock(uint32_t max_pending) : max_pending_(max_pending) {}

  void Arrived(uint64_t id, TimePoint now);
  // The request is done; returns its delay as the bound sees it, 0 if its clock never ran.
  Duration Completed(uint64_t id, TimePoint now);

 private:
  uint32_t max_pending_;
  std::unordered_map<uint64_t, TimePoint> since_;  // it counts; Max: it waits behind the others
  std::deque<uint64_t> waiting_;                   // these; some may be done already
};

// A copy of what the monitor knows, for whoever admits; empty lists: nothing yet.
struct ServiceReport {
  bool stable = false;
  std::vector<double> service_parts;  // [i]: Q_service((i + 1) %)
  std::vector<double> io_rates;       // [i]: Q_IOrate((i + 1) %)
  std::vector<ClassId> measured;      // classes that are part of it
};

class ServiceMonitor {
 public:
  static constexpr uint64_t kEnough = 1000;  // requests of latency-bound classes in each half

  // `first_half`: 0 for halves of the whole window from the start.
  ServiceMonitor(Duration window, TimePoint now, Duration first_half = Duration(0));

  // A request of a latency-bound class took `part` of its worst-case delay.
  void NoteDelay(double part, TimePoint now);
  // A request of a throughput-bound class was served; a large one counts as several.
  void NoteRequest(TimePoint now, double count = 1);
  void Restart(TimePoint now);

  // Q_service(e): upper edge of a bin of 1 %; 0 without samples.
  [[nodiscard]] double ServicePart(double e) const;
  [[nodiscard]] double IoRate(double x) const { return Quantile(SortedRates(), x); }
  [[nodiscard]] uint64_t samples() const { return halves_[0].samples + halves_[1].samples; }
  [[nodiscard]] bool Stable() const;
  // The same as admission wants it; valid while this lives and is not told more.
  [[nodiscard]] ServiceMeasures Measures() const;
  [[nodiscard]] ServiceReport Report() const;

 private:
  static constexpr size_t kBins = 301;  // of 1 %; the last for everything beyond three bounds

  struct Half {
    std::array<uint64_t, kBins> parts{};
    uint64_t samples = 0;
    std::vector<double> rates;  // one a second
  };

  [[nodiscard]] std::vector<double> SortedRates() const;
  static double Quantile(const std::vector<double>& sorted, double x);
  void Turn(TimePoint now);
  void CloseSeconds(TimePoint now);

  static void Merge(const Half& from, Half* into);

  Duration full_half_;
  Duration first_half_;
  Duration half_;
  std::array<Half, 2> halves_;  // the older one, the current one
  TimePoint half_since_;
  TimePoint second_since_;
  double in_second_ = 0;
};

}  // namespace weir::osd::qos
