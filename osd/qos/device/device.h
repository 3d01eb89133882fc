// Device: the sole owner of what the device holds. How much may be there at once (depth_control.h),
// what a request costs it (cost_model.h, service_time.h), whose turn it is on a disk with a head,
// and what the disk gives (disk_estimate.h). Its questions change nothing.
//
// The device is *kept short* when depth is auto and somebody waits for each of its small requests
// while the device works for others: it holds no more than keeps it busy, large writes come in
// pieces, and light requests enter beyond the depth. It is *guarded* when the class of such a
// request has a latency bound; then bulk obeys the governor, too (control/bulk_governor.h).
//
// On a disk with a head the way back to a small reader costs as much as a megabyte. Turns are made
// by bursts.h (others go together, between reads) or, if the operator says so, by anticipation.h
// (the disk waits for the reader who is about to ask again). Both keep the disk for the reader
// until a moment; the surplus of others waits for it.
//
// Threads: the scheduler's owner. Pure. Units: bytes, Duration.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "osd/qos/class_queue.h"
#include "osd/qos/device/anticipation.h"
#include "osd/qos/device/bursts.h"
#include "osd/qos/device/cost_model.h"
#include "osd/qos/device/depth_control.h"
#include "osd/qos/device/disk_estimate.h"
#include "osd/qos/device/service_time.h"
#include "osd/qos/throttle.h"

namespace weir::osd::qos {

class Device {
 public:
  Device(const SchedulerConfig& config, TimePoint now);
  void Configure(const SchedulerConfig& config);

  // Depth auto follows the device where what is light can leave the dispatch window first.
  [[nodiscard]] bool adapts() const { return adapts_; }
  // Of requests that may be decided ahead for it.
  [[nodiscard]] uint32_t window_depth() const { return rented() ? 1 : depth_; }
  [[nodiscard]] uint64_t in_flight() const { return depth_control_.in_flight(); }

  // A virtual disk has something to do (common/qos/virtual_disk.h): for a second, where depth is
  // auto, the device holds one request, since only then the time of each is known (C6), and whose
  // time it is can be decided only before a request is there.
  void Rented(TimePoint now) { rented_until_ = now + DepthControl::kShortFor; }
  [[nodiscard]] bool rented() const { return rented_; }

  // What may go to it.
  [[nodiscard]] bool HasSlot(TimePoint now) const;
  // Whether a light request may enter beyond the depth.
  [[nodiscard]] bool HasSlotBeyond(const Request& light) const {
    return !rented() && depth_control_.HasSlotBeyond(light);
  }
  // Light requests have passed others for as long as these take themselves: it is their turn.
  [[nodiscard]] bool Overtaken() const { return adapts_ && depth_control_.Overtaken(); }
  // The next request is to show how long one takes alone: any, not the most urgent.
  [[nodiscard]] bool Probes() const { return adapts_ && depth_control_.Probes(); }
  // The device is kept for a reader who is about to ask: surplus of others waits.
  [[nodiscard]] bool IsKept(TimePoint now) const {
    return adapts_ && !rented() && now < KeptUntil();
  }
  [[nodiscard]] TimePoint KeptUntil() const {
    return std::max(anticipation_.kept_until(), bursts_.KeptUntil());
  }
  [[nodiscard]] bool IsShort(TimePoint now) const { return adapts_ && depth_control_.IsShort(now); }
  // It may do less than it can, for what it is let have.
  [[nodiscard]] bool MayStarve(TimePoint now) const {
    return adapts_ && (depth_control_.IsShort(now) || depth_control_.RunsEmpty());
  }
  [[nodiscard]] bool IsGuarded(TimePoint now) const { return now < guarded_until_; }
  [[nodiscard]] TimePoint guarded_until() const { return guarded_until_; }

  // What whoever starts requests should know: see Advice and PullResult (scheduler.h).
  [[nodiscard]] uint64_t PieceBytes(TimePoint now) const {
    return bursts_.Acts(now) ? UINT64_MAX : depth_control_.PieceBytes(now);
  }
  [[nodiscard]] bool LandingFrees(TimePoint now) const {
    return IsShort(now) && (landed_alone_ < kStep || bursts_.Acts(now));
  }
  // `more`: something waits for its turn.
  [[nodiscard]] std::optional<Duration> Patience(const Request& request, bool more) const {
    if (request.part < Request::Part::kLanding) return std::nullopt;
    return bursts_.Patience(more);
  }

  // The steps of a request.
  // It has come, and waits.
  void Asked(const ClassQueue& queue, const Request& request, TimePoint now);
  // A request of the class is about to leave. Its promise is kept if the others take no longer than
  // that (guarantee.h).
  void KeepWithin(const ClassQueue& queue, Duration span, TimePoint now);
  // Before the next is chosen. The device runs empty to show how long a request takes alone, if it
  // is time to see that.
  void Prepare(TimePoint now) {
    rented_ = rents_ && now < rented_until_;
    if (adapts_ && in_flight() < depth_) depth_control_.ProbeIfDue(now);
  }
  // It goes to the device. `others_wait`: requests that are not light wait for a slot.
  void Started(ClassQueue* queue, Request* request, bool others_wait, TimePoint now);
  // The device is done with it, its commit is not: its slot is free, its time is known.
  void Landed(ClassQueue* queue, Request* request, TimePoint now);
  void Completed(ClassQueue* queue, Request* request, TimePoint now);

  // What it costs.
  [[nodiscard]] const CostModel& cost() const { return cost_model_; }
  [[nodiscard]] const ServiceTime& service_time() const { return service_time_; }
  // What it gives.
  [[nodiscard]] DiskEstimate& estimate() { return estimate_; }
  [[nodiscard]] const DiskEstimate& estimate() const { return estimate_; }
  // What admission books for a request of that size.
  [[nodiscard]] double WorthOf(uint64_t bytes) const {
    return std::max(static_cast<double>(bytes), request_unit_);
  }

 private:
  static constexpr uint64_t kPage = 4 << 10;

  // A disk with a head: wherever that was, a small read takes milliseconds.
  [[nodiscard]] bool ReadsAreFar(uint64_t bytes) const {
    return cost_model_.Alone(OpKind::kRead, bytes) >= Bursts::kFarRead;
  }
  [[nodiscard]] static bool IsLightRead(const Request& request) {
    return request.op == OpKind::kRead && IsLight(request);
  }
  // Whose turn it is follows from turns, not from depth.
  [[nodiscard]] bool TurnsDecide(TimePoint now) const {
    return bursts_.Acts(now) || anticipation_.on();
  }
  void TakeTurn(Request* request, TimePoint now);
  void Leave(ClassQueue* queue, Request* request, TimePoint now);

  bool adapts_ = false;
  bool rents_ = false;   // a virtual disk's time would have to be known
  bool rented_ = false;  // it has to, now
  TimePoint rented_until_;
  uint32_t depth_ = SchedulerConfig::kAutoDepth;
  uint32_t chosen_depth_ = 0;  // 0: auto
  double request_unit_ = 0;    // what the smallest request is worth; 0: not known
  CostModel cost_model_;
  ServiceTime service_time_;
  DepthControl depth_control_{&cost_model_};
  Anticipation anticipation_;
  Bursts bursts_;
  DiskEstimate estimate_;
  uint64_t started_ = 0;      // and not complete: in flight, or landed
  Duration landed_alone_{0};  // device time of what has landed
  TimePoint guarded_until_;
};

}  // namespace weir::osd::qos
