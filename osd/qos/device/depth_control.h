// DepthControl: how much the device holds at once when depth is auto.
//
// 32 requests or 8 MiB, whichever is less, keep a fast disk busy. For a second after a request that
// somebody waits for (Device::Asked says which) the device is kept short, so that the next such
// request finds no more before it than keeps the device busy: another one enters while
//
//   use * sum of alone(what is there) < 1.125 * alone(a typical one)
//
// (cost_model.h; Little's law with an eighth to spare; 128 KiB may always be there; typical is the
// longest lately; README.md says why). Light requests (common/qos/lane.h), 256 KiB of them at once,
// enter beyond all that, but pass others by no more than these take.
//
// Threads: the scheduler's owner. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/qos/lane.h"
#include "common/qos/qos_config.h"
#include "osd/qos/device/cost_model.h"
#include "osd/qos/request.h"

namespace weir::osd::qos {

class DepthControl {
 public:
  static constexpr uint64_t kBytes = 2 * kLargestRequest;    // not kept short
  static constexpr uint64_t kBeyondBytes = 2 * kLightBytes;  // of light requests, beyond the depth
  static constexpr uint64_t kAlwaysBytes = kLightBytes;
  static constexpr Duration kShortFor = std::chrono::seconds(1);
  static constexpr int kFirstProbes = 8;
  // Others may be passed by so much (ns) however short they are: ten small reads of flash.
  static constexpr double kPassedMin = 1e6;
  static constexpr Duration kProbeEvery = std::chrono::seconds(10);

  explicit DepthControl(const CostModel* model) : model_(model) {}

  void KeepShort(TimePoint now) { short_until_ = now + kShortFor; }
  [[nodiscard]] bool IsShort(TimePoint now) const { return now < short_until_; }

  // For a second: whose promise may be broken (id) is kept while the device works on all that it
  // holds for no longer than `span`, of several such classes the least; max: that class spends all
  // that it is owed. What no depth can give is not tried.
  void KeepWithin(ClassId id, Duration span, TimePoint now);

  // Of those that may enter beyond the depth: small, and with a deadline.
  [[nodiscard]] static bool EntersBeyond(const Request& request) {
    return LaneOf(request.bytes) == Lane::kInteractive && request.finish_time < TimePoint::Max();
  }
  // On the device: all requests, their bytes, and the bytes of those that may enter beyond.
  [[nodiscard]] uint64_t in_flight() const { return in_flight_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t light_bytes() const { return light_bytes_; }

  // How long the device works on what it holds at most while it is not kept short; very long: not
  // known.
  [[nodiscard]] Duration WorkOfFull() const;
  // Whether the device takes any request now, the place beyond the depth aside.
  [[nodiscard]] bool HasSlot(TimePoint now) const;
  // Whether it takes this one although HasSlot said no.
  [[nodiscard]] bool HasSlotBeyond(const Request& request) const;
  // It holds less than keeps it busy, to show how long a request takes alone.
  [[nodiscard]] bool RunsEmpty() const { return probing_; }
  // Lets the device run empty, if it is time to see how long a request takes alone.
  void ProbeIfDue(TimePoint now);
  // The next request is to show that: a common one, not the most urgent.
  [[nodiscard]] bool Probes() const { return probing_ && in_flight_ == 0; }

  // Others have been passed by more than they take themselves, by requests that nobody is owed: it
  // is their turn, or many readers would lock them out.
  [[nodiscard]] bool Overtaken() const {
    return static_cast<double>(passed_.count()) > std::max(typical_ns_, kPassedMin);
  }

  // Also stamp and read the request's estimate. Completed: before the model learns of it.
  // `others_wait`: requests that may not enter beyond the depth wait for a slot.
  void Submitted(Request* request, bool others_wait);
  void Completed(const Request& request, TimePoint now);

  // Pieces in which a large write should reach the device now, so that a light request is not
  // stuck behind all of it: 100 us of the device's time, but not so little that the fixed cost of a
  // piece is over 6 % of it; a multiple of 64 KiB, and a power of two where applications' writes
  // would else leave rests (above 256 KiB). UINT64_MAX: in one piece, the device is not kept short.
  [[nodiscard]] uint64_t PieceBytes(TimePoint now) const;

 private:
  // One more would break a promise.
  [[nodiscard]] bool WorksTooLong(TimePoint now) const;
  // Whether it is time to see how long one request takes alone.
  [[nodiscard]] bool ProbeDue(TimePoint now) const;

  const CostModel* const model_;
  uint64_t in_flight_ = 0;
  uint64_t bytes_ = 0;
  uint64_t light_bytes_ = 0;
  Duration passed_{0};     // what others that waited were passed by, in device time
  Duration alone_{0};      // sum of the estimates of what is in flight
  double typical_ns_ = 0;  // largest estimate lately
  TimePoint short_until_;
  ClassId span_of_;  // with span_until_
  Duration span_{0};
  TimePoint span_until_;
  bool probing_ = false;     // the device runs empty, or has its one request
  bool probe_sent_ = false;  // the latter
  int probes_ = 0;
  TimePoint probed_at_;
};

}  // namespace weir::osd::qos
