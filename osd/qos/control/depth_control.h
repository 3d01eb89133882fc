// DepthControl: how much the device holds at once when depth is auto.
//
// As long as nobody is in a hurry: 32 requests or 8 MiB, whichever is less, which keeps a fast disk
// busy. In a hurry is a class with a latency bound, or a thin one: at most 128 KiB of it wait or
// are on the device, so that it gets no more than its latency allows, while the device works for
// others. For a second after such a request the device holds only what keeps it busy: another
// one enters while the device time of what is there, sum of busy(bytes), is less than
//
//   1.5 * mean of alone(bytes)      Little's law, with half of it to spare
//
// (cost_model.h; 128 KiB may always be there). A serial disk is thus left two requests, one with 8
// channels 12. The rule finds its way up: at too small a depth requests follow each other
// slowly, busy falls when one is added, and that makes room for more. `alone` is measured, once in
// ten seconds of hurry, by letting the device run empty and giving it one request: one bubble.
//
// The hurried requests themselves, small (64 KiB) and few (256 KiB at once), enter beyond all that.
// Threads: the scheduler's owner. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "osd/qos/control/cost_model.h"
#include "osd/qos/scheduler.h"

namespace weir::osd::qos {

class DepthControl {
 public:
  static constexpr uint64_t kBytes = 2 * kLargestRequest;  // at ease
  static constexpr uint64_t kThinBytes = 128 << 10;        // of one class, waiting or on the device
  static constexpr uint64_t kHurriedBytesEach = 64 << 10;
  static constexpr uint64_t kHurriedBytes = 256 << 10;
  static constexpr uint64_t kAlwaysBytes = 128 << 10;
  static constexpr Duration kHurryLasts = std::chrono::seconds(1);
  static constexpr Duration kProbeEvery = std::chrono::seconds(10);

  explicit DepthControl(const CostModel* model) : model_(model) {}

  // Somebody in a hurry sent a request while the device worked for others.
  void Hurried(TimePoint now) {
    hurried_at_ = now;
    hurried_ = true;
  }
  [[nodiscard]] bool InHurry(TimePoint now) const {
    return hurried_ && now - hurried_at_ < kHurryLasts;
  }

  // Whether the device takes any request now, its place for hurried ones aside.
  [[nodiscard]] bool HasSlot(TimePoint now);
  // Whether it takes this one, which is in a hurry, although HasSlot said no.
  [[nodiscard]] bool HasHurriedSlot(const Request& request) const;

  // Also stamp and read the request's estimates. Completed: before the model learns of it.
  void Submitted(Request* request);
  void Completed(const Request& request, TimePoint now);

  // Pieces in which a large write should reach the device now, so that a request in a hurry is not
  // stuck behind all of it: 100 us of the device's time, but not so little that the fixed cost of a
  // piece is over 6 % of it; a multiple of 64 KiB. UINT64_MAX: nobody is in a hurry, in one piece.
  [[nodiscard]] uint64_t ChunkBytes(TimePoint now) const;

 private:
  [[nodiscard]] bool Small(const Request& request) const {
    return request.bytes <= kHurriedBytesEach;
  }
  // Whether it is time to see how long one request takes alone.
  [[nodiscard]] bool ProbeDue(TimePoint now) const;

  const CostModel* const model_;
  size_t in_flight_ = 0;
  uint64_t bytes_ = 0;
  uint64_t small_bytes_ = 0;
  Duration busy_{0};  // sums of the estimates of what is in flight
  Duration alone_{0};
  bool hurried_ = false;
  TimePoint hurried_at_;
  bool probing_ = false;     // the device runs empty, or has its one request
  bool probe_sent_ = false;  // the latter
  TimePoint probed_at_;
  bool probed_ = false;
};

}  // namespace weir::osd::qos
