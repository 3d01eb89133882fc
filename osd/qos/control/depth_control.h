// DepthControl: how much the device holds at once when depth is auto.
//
// As long as nobody is in a hurry: 32 requests or 8 MiB, whichever is less, which keeps a fast disk
// busy. In a hurry is a class with a latency bound, or a light flow of any (common/qos/lane.h), so
// that it gets no more than its latency allows, while the device works for others. For a second
// after such a request the device holds only what keeps it busy: another one enters while
//
//   use * sum of alone(what is there) < 1.125 * alone(a typical one)
//
// (cost_model.h; Little's law with an eighth to spare; 128 KiB may always be there; typical is the
// longest lately). A serial disk is thus left two requests, one with 16 channels 18. The
// rule finds its way up: at too small a depth `use` is 1 over that depth, which admits one more.
// `alone` is measured by letting the device run empty and giving it one request, eight times when
// a hurry begins on an unknown device and once in ten seconds of it later: one bubble each.
//
// The hurried requests themselves, interactive (32 KiB) and few (256 KiB at once), enter beyond all
// that, but pass others by no more than these take.
//
// Threads: the scheduler's owner. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/qos/lane.h"
#include "osd/qos/control/cost_model.h"
#include "osd/qos/scheduler.h"

namespace weir::osd::qos {

class DepthControl {
 public:
  static constexpr uint64_t kBytes = 2 * kLargestRequest;  // at ease
  static constexpr uint64_t kHurriedBytes = 256 << 10;
  static constexpr uint64_t kAlwaysBytes = 128 << 10;
  static constexpr Duration kHurryLasts = std::chrono::seconds(1);
  static constexpr int kFirstProbes = 8;
  // Others may be passed by so much (ns) however short they are: ten small reads of flash.
  static constexpr double kPassedMin = 1e6;
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

  // Of those that may enter beyond the depth: small, and with a deadline. Small ones without are
  // not counted, or a neighbour's would take the place.
  [[nodiscard]] static bool Express(const Request& request) {
    return request.bytes <= kInteractiveBytesMax && request.finish_time < TimePoint::Max();
  }
  [[nodiscard]] uint64_t express_bytes() const { return express_bytes_; }  // on the device

  // Whether the device takes any request now, its place for hurried ones aside.
  [[nodiscard]] bool HasSlot(TimePoint now);
  // The next request is to show how long one takes alone: a common one, not the most urgent.
  [[nodiscard]] bool Probes() const { return probing_ && in_flight_ == 0; }
  // Whether it takes this one, which is in a hurry, although HasSlot said no.
  [[nodiscard]] bool HasHurriedSlot(const Request& request) const;

  // Others have been passed by more than they take themselves, by requests that nobody is owed: it
  // is their turn, or many readers would lock them out.
  [[nodiscard]] bool Overtaken() const {
    return static_cast<double>(passed_.count()) > std::max(typical_ns_, kPassedMin);
  }

  // Also stamp and read the request's estimate. Completed: before the model learns of it.
  // `others_wait`: requests that are not express wait for a slot.
  void Submitted(Request* request, bool others_wait);
  void Completed(const Request& request, TimePoint now);

  // Pieces in which a large write should reach the device now, so that a request in a hurry is not
  // stuck behind all of it: 100 us of the device's time, but not so little that the fixed cost of a
  // piece is over 6 % of it; a multiple of 64 KiB, and a power of two where applications' writes
  // would else leave rests (above 256 KiB). UINT64_MAX: nobody is in a hurry, in one piece.
  [[nodiscard]] uint64_t ChunkBytes(TimePoint now) const;

 private:
  // Whether it is time to see how long one request takes alone.
  [[nodiscard]] bool ProbeDue(TimePoint now) const;

  const CostModel* const model_;
  size_t in_flight_ = 0;
  uint64_t bytes_ = 0;
  uint64_t express_bytes_ = 0;
  Duration passed_{0};     // what others that waited were passed by, in device time
  Duration alone_{0};      // sum of the estimates of what is in flight
  double typical_ns_ = 0;  // largest estimate lately
  bool hurried_ = false;
  TimePoint hurried_at_;
  bool probing_ = false;     // the device runs empty, or has its one request
  bool probe_sent_ = false;  // the latter
  int probes_ = 0;
  TimePoint probed_at_;
};

}  // namespace weir::osd::qos
