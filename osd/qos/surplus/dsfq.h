// Dsfq: start-time fair queueing with delays (DSFQ §2.3, §3; RULES.md §1, §2). Every head has
//
//   S = max{ v at its arrival, F_prev + delay / w }      F = S + cost / w          (5) (6)
//
// and the smallest S is served first; v is the S of the last surplus release. Tags are computed
// when a request becomes the head: the same numbers as at arrival, but a new weight acts at once.
// Weights are used as set (a common factor changes nothing); only K of the hybrid delay (11) needs
// them normalised over all registered classes (A7).
//
// Hybrid-h (RULES.md §2.5, beyond the paper) cuts the delay as hybrid does, but remembers what it
// cut off, per class and OSD, and counts it with the next requests:
//
//   o = min{owed + delay, w * (v - v_M)}   x = F_prev + o / w   where total would start it
//   x <= v: S = v, owed = 0                                     time has absorbed the debt
//   else:   S = min{x, max{v, F_prev} + K * cost / w}, owed = (x - S) * w
//
// so that a burst elsewhere is made up for later, and the minimum share of (11) holds all the same.
// v_M is the v of kMemory ago: nobody owes more than his share since. I-9: 0 <= owed.
//
// Two rules make it compose with a guarantee stage, and one keeps large requests from delaying
// small ones (README.md says why):
// - A guaranteed release advances F, so that it counts in the class's share, but no further than
//   `lead` (twice the leaf's cap) beyond v.
// - It moves v no further than the smallest S of all heads.
// - While the smallest S cannot go, small heads with F <= S + the longest F - S lately may; v stays
//   at the smallest S. Where the large wait for something that the small do not take (processors),
//   any small head may, and counts like a guaranteed release.
#pragma once

#include <array>
#include <utility>

#include "osd/qos/class_heap.h"
#include "osd/qos/surplus/surplus.h"

namespace weir::osd::qos {

class Dsfq final : public Surplus {
 public:
  // Both outlive this. `total_weight`: of all registered classes. Where it, or the sharing mode,
  // changes, heads must be offered anew.
  Dsfq(const SchedulerConfig& config, const double& total_weight)
      : config_(config), total_weight_(total_weight) {}

  // Under cost `device-time` a request that had the device to itself is settled to that time.
  void Completed(ClassQueue* queue, const Request& request, Duration device_time,
                 TimePoint now) override;
  void Arrived(Request* request) override { request->v_arrival = virtual_time_; }
  // Of a class that had nothing here for long: its first request, not yet in the queue, tells of no
  // more than K * cost (A6). What it got elsewhere may otherwise keep it away for as long again.
  void ForgiveIdle(const ClassQueue& queue, Request* request) const;
  void Offer(ClassQueue* queue) override;
  void OfferAgain(ClassQueue* queue) override;
  void SetTime(TimePoint now) override;
  void Withdraw(ClassQueue* queue) override {
    by_start_.Remove(queue);
    by_finish_.Remove(queue);
  }
  ClassQueue* Pick() override { return by_start_.empty() ? nullptr : by_start_.Top(); }
  ClassQueue* PickLight(bool free) override;
  void Released(ClassQueue* queue, bool guaranteed) override;

  // Tags have grown until doubles lose precision: subtract what RestartVirtualTime returns from all
  // of every class with Shift, and offer the heads anew.
  [[nodiscard]] bool WantsRebase() const { return virtual_time_ > kRebaseAt; }
  [[nodiscard]] double RestartVirtualTime() {
    past_ = {};
    return std::exchange(virtual_time_, 0);
  }
  static void Shift(ClassQueue* queue, double by);

  static constexpr Duration kMemory = std::chrono::milliseconds(250);  // of hybrid-h

 private:
  static constexpr size_t kSlots = 10;  // of kMemory
  static constexpr double kRebaseAt = 1LL << 44;
  static constexpr double kKeepLongest = 0.995;  // from one release to the next

  [[nodiscard]] double HybridFactorOf(const ClassSpec& spec) const;
  // The start tag of the head under hybrid-h; notes what is owed after it.
  [[nodiscard]] double StartWithHistory(ClassQueue* queue, const Request& head) const;

  const SchedulerConfig& config_;
  const double& total_weight_;
  double virtual_time_ = 0;
  std::array<double, kSlots> past_{};  // v at the ends of the last slots
  size_t slot_ = 0;                    // so many have ended; the oldest is the next to be written
  TimePoint slot_ends_;
  double longest_ = 0;  // F - S of what was released lately
  ClassHeap<double, HeapSlot::kSurplus> by_start_;
  ClassHeap<double, HeapSlot::kLight> by_finish_;  // classes whose head is of a light flow
};

}  // namespace weir::osd::qos
