// Cooperative: virtual disks that share one device by its time (Yan and Jiang, "Spatial-Locality-
// Aware Virtual Storage Devices", §3.2; RULES.md §5). The resource is measured device time, so
// that random access costs its owner and nobody else.
//
//   charged service of t by disk i:   sys += t     v_i += t / f_i        f_i: its share of the peak
//
// 1. Entitled is who has v_i <= sys; the largest gap goes first. One found idle is set to
//    v_i = sys: time not used is no credit.
// 2. An entitled throughput disk lends its turn, and pays for it, to the latency disk with the most
//    requests that have missed or are missing their bound, while
//    served / (now + (1/f + 2) * est - start) >= (1 - tolerance) * c: still true at its next turn
//    (A27).
// 3. Nobody entitled: spare time, which moves nobody's clock but the system's (A25: the paper moves
//    none, and then nobody is ever entitled again). In this order: latency disks, most late
//    requests first; throughput disks, the one furthest behind its rate; the others in turn.
//
// missed:  still queued and arrival + b < now (A29)
// missing: would be if its disk had the device from now on: arrival + b < now + est * (1 + ahead).
//          Looked for among the first kLookAhead that are not missed.
//
// Beyond the paper: classes without a contract share kBestEffortShare of the device by weight, so
// that nobody stands still; a sequential disk may keep the device for a `quantum` (A30); with more
// than one request on the device an estimate is charged until the time is known.
//
// Under cost `requests` t is 1 per request: the accounting that fails (figure 4), kept as baseline.
//
// Cost: O(log n) per decision; n disks. Threads: the scheduler's owner.
#pragma once

#include <unordered_map>

#include "osd/qos/class_heap.h"
#include "osd/qos/surplus/surplus.h"

namespace weir::osd::qos {

class Cooperative final : public Surplus {
 public:
  struct Options {
    bool count_requests = false;
    Duration quantum{0};
    Duration throughput_window{0};  // 0: averages go back to the start of the flow
    SpareCharge spare = SpareCharge::kSystem;
  };
  static constexpr double kBestEffortShare = 0.01;
  static constexpr int kLookAhead = 64;

  explicit Cooperative(const Options& options) : options_(options) {}

  void Offer(ClassQueue* queue) override;
  void OfferAgain(ClassQueue* queue) override { Offer(queue); }
  void Withdraw(ClassQueue* queue) override;
  ClassQueue* Pick() override;
  void Released(ClassQueue* queue, bool guaranteed) override;

  void SetTime(TimePoint now) override { now_ = now; }
  void Grew(ClassQueue* queue) override;
  void Leaving(ClassQueue* queue, Request* request) override;
  void Completed(ClassQueue* queue, const Request& request, Duration device_time,
                 TimePoint now) override;
  void Remove(ClassQueue* queue) override;

  // For people and tests, in seconds of device time.
  [[nodiscard]] double system_clock() const { return system_clock_; }
  [[nodiscard]] double ClockOf(const ClassQueue& queue) const;

 private:
  // What the last Pick decided: whom to serve, on whose account.
  struct Decision {
    ClassQueue* queue = nullptr;
    ClassQueue* payer = nullptr;  // none: spare time
  };

  [[nodiscard]] double ShareOf(const ClassQueue& queue) const;
  [[nodiscard]] bool Entitled(double clock) const;
  [[nodiscard]] bool KeepsTurn() const;
  ClassQueue* MostEntitled();
  ClassQueue* MostLate();
  ClassQueue* NextForSpare();
  [[nodiscard]] bool MayLend(const ClassQueue& donor, const ClassQueue& borrower) const;

  void Meet(ClassQueue* queue);
  void File(ClassQueue* queue);
  void Unfile(ClassQueue* queue);
  void RefreshLate(ClassQueue* queue);
  void CountForAverage(ClassQueue* queue, uint64_t bytes, TimePoint now) const;
  void Charge(ClassQueue* payer, double time);
  void ChargeSpare(ClassQueue* queue, double time);
  void Leave(ClassQueue* queue, Request* head);
  void Settle(ClassQueue* queue, const Request& request, double correction);

  const Options options_;
  TimePoint now_{};
  double system_clock_ = 0;
  double best_effort_weight_ = 0;
  uint64_t turns_ = 0;
  Decision decision_;
  ClassQueue* turn_of_ = nullptr;  // whose quantum runs
  double turn_used_ = 0;

  std::unordered_map<ClassId, ClassQueue*> disks_;
  ClassHeap<double, HeapSlot::kSurplus> by_clock_;  // also idle ones, until they are met there
  // Who may get spare time, by type.
  ClassHeap<int64_t, HeapSlot::kSpare> by_lateness_;  // latency
  ClassHeap<double, HeapSlot::kSpare> by_average_;    // throughput
  ClassHeap<uint64_t, HeapSlot::kSpare> by_turn_;     // the others
  ClassHeap<TimePoint, HeapSlot::kDue> by_due_;       // when the count of late ones grows
};

}  // namespace weir::osd::qos
