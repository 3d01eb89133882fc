// Scheduler::Impl: joins the boxes of the pipeline. scheduler_impl.cc holds the path of a request,
// scheduler_setup.cc what operators change and what timers do.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "osd/qos/class_heap.h"
#include "osd/qos/class_queue.h"
#include "osd/qos/control/anticipation.h"
#include "osd/qos/control/bandwidth_maximizer.h"
#include "osd/qos/control/bursts.h"
#include "osd/qos/control/contract_meter.h"
#include "osd/qos/control/cost_model.h"
#include "osd/qos/control/depth_control.h"
#include "osd/qos/control/disk_estimate.h"
#include "osd/qos/control/processor_pace.h"
#include "osd/qos/control/service_time.h"
#include "osd/qos/control/wait_meter.h"
#include "osd/qos/dispatch/dispatch.h"
#include "osd/qos/guarantee/guarantee.h"
#include "osd/qos/guarantee/root_gate.h"
#include "osd/qos/scheduler.h"
#include "osd/qos/surplus/surplus.h"

namespace weir::osd::qos {

class Dsfq;

class Scheduler::Impl {
 public:
  Impl(const SchedulerConfig& config, TimePoint now);

  // The path of a request.
  void Enqueue(Request* request, TimePoint now);
  PullResult Pull(TimePoint now);
  void Landed(Request* request, TimePoint now);
  void Completed(Request* request, TimePoint now);
  bool Cancel(Request* request, TimePoint now);

  // What operators change.
  void Configure(const SchedulerConfig& config, TimePoint now);
  void SetClass(ClassSpec spec, TimePoint now);
  void RemoveClass(ClassId id, TimePoint now);

  // Timers and numbers.
  void Tick(TimePoint now);
  [[nodiscard]] TimePoint NextTick() const { return std::min(next_second_, next_expiry_); }
  [[nodiscard]] std::vector<ClassCounters> Counters(TimePoint now);
  [[nodiscard]] ServiceReport Measures() const;
  [[nodiscard]] uint64_t token_rate() const { return gate_.rate(); }
  [[nodiscard]] uint64_t ChunkBytes(TimePoint now) const {
    return bursts_.Acts(now) ? UINT64_MAX : depth_control_.ChunkBytes(now);
  }
  [[nodiscard]] Duration ServiceEstimate(OpKind op, uint64_t bytes) const {
    return cost_model_.Busy(op, bytes);
  }
  void SetBooked(uint64_t bytes_per_s) { booked_ = bytes_per_s; }
  [[nodiscard]] TimePoint LookAtProcessors() const { return processor_pace_.LookAt(); }
  void ProcessorsWaited(Duration total, TimePoint now) { processor_pace_.Look(total, now); }
  [[nodiscard]] uint64_t pace(TimePoint now) const { return processor_pace_.rate(now); }
  void DoneOutside(uint64_t bytes) { disk_estimate_.Done(WorthOf(bytes)); }
  [[nodiscard]] DiskEstimate::View Disk() const { return disk_estimate_.Now(); }
  [[nodiscard]] uint64_t queued() const { return queued_; }
  [[nodiscard]] uint64_t in_flight() const { return in_flight_; }
  [[nodiscard]] bool HasSlot(TimePoint now);
  [[nodiscard]] bool LandingFrees(TimePoint now) const {
    return blocked_tokens_ > 0 || (InHurry(now) && (landed_alone_ < kStep || bursts_.Acts(now)));
  }
  [[nodiscard]] std::optional<Duration> BurstPatience(const Request& request) const {
    const bool of_burst = request.turn >= Request::Turn::kLanding;
    if (!of_burst) return std::nullopt;
    return bursts_.Patience(queued_ > 0);
  }
  [[nodiscard]] bool InHurry(TimePoint now) const {
    return Adapts() && depth_control_.InHurry(now);
  }
  [[nodiscard]] bool BoundInHurry(TimePoint now) const { return now < bound_in_hurry_until_; }

 private:
  // Surplus that is decided but not yet on the device: no more bytes than this, or a newcomer waits
  // for all of it. What is owed may always enter the window, or leaves would overflow behind a few
  // large requests of others.
  static constexpr uint64_t kWindowBytes = kLargestRequest;
  // While somebody is in a hurry, those who wait for tokens of the root go together in steps of
  // this: between them the device and the processors are free for small requests.
  static constexpr Duration kStep = std::chrono::milliseconds(2);
  static constexpr uint64_t kSmallRead = 4 << 10;
  static constexpr uint32_t kNumbered = 1 << 16;  // class numbers below are in numbered_

  [[nodiscard]] ClassQueue* Find(ClassId id) const;  // class 0 for an unknown one
  void SetNumbered(ClassId id, ClassQueue* queue);
  // Whose request it is by now: class 0's when its class was removed, even if there is a new one of
  // the same number.
  ClassQueue* OwnerOf(const Request& request);
  [[nodiscard]] bool ReturnsFromIdle(ClassQueue* queue, TimePoint now) const;
  void NoteGone(ClassQueue* queue, TimePoint now);  // one request of it was done or cancelled
  [[nodiscard]] int64_t CostOf(const Request& request) const;
  void CountElsewhere(ClassQueue* queue, Request* request);
  static void PayLimit(ClassQueue* queue, const Request& request, TimePoint now);
  void NoteSize(ClassQueue* queue, int64_t tokens, TimePoint now);
  // Puts the class where its head belongs: nowhere, held by its limit, or before the stages.
  void Place(ClassQueue* queue, TimePoint now);
  void PlaceHead(ClassQueue* queue, TimePoint now);
  void Withdraw(ClassQueue* queue);
  // Whether boxes take the requests of a class in the order of its flows: those that decide by
  // deadlines of single requests have an order of their own.
  [[nodiscard]] bool HasFlows() const {
    return config_.surplus == SurplusKind::kDsfq || config_.surplus == SurplusKind::kFcfs;
  }
  [[nodiscard]] FlowKey FlowOf(const Request& request) const {
    return HasFlows() ? request.flow : FlowKey{};
  }
  void JoinFlow(ClassQueue* queue, Request* request);
  // Another flow's turn has come than the head's.
  [[nodiscard]] static bool HeadIsStale(const ClassQueue& queue);
  // The request that its flow's turn has come for becomes the head.
  static void BringFlowForward(ClassQueue* queue);

  void FillWindow(bool has_slot, TimePoint now);
  bool ReleaseOne(bool has_room, TimePoint now);
  // A small request of somebody in a hurry, while the class in turn waits.
  bool ReleaseBeside(TimePoint now);
  void BringForward(ClassQueue* queue, TimePoint now);
  // Why a request goes: its class is owed it, or it is in turn, or passes others who are paced.
  enum class Turn : uint8_t { kOwed, kSurplus, kFree };
  void Release(ClassQueue* queue, Turn turn, TimePoint now);
  Request* Submit(Request* request, TimePoint now);
  // Whether the window and the root let surplus of that class go now.
  bool MayGo(const ClassQueue& queue, bool has_room, TimePoint now);
  bool RootAdmits(const ClassQueue& queue, int64_t tokens, TimePoint now);
  // Whether a rate, of the root or of the processors, held surplus back.
  [[nodiscard]] bool RateBlocks() const { return blocked_tokens_ > 0 || paced_; }
  [[nodiscard]] std::optional<TimePoint> WakeAt(TimePoint now) const;

  // What deadlines and the device's measured speed decide (scheduler_device.cc).
  [[nodiscard]] bool PassesAll() const { return config_.surplus == SurplusKind::kPass; }
  [[nodiscard]] bool Adapts() const;
  // The device is kept for somebody who is about to ask: surplus of others waits.
  [[nodiscard]] bool IsKept(TimePoint now) const { return Adapts() && now < KeptUntil(); }
  [[nodiscard]] TimePoint KeptUntil() const {
    return std::max(anticipation_.kept_until(), bursts_.KeptUntil());
  }
  // Whether it has its place in a burst, or is one of the reads that bursts are beside.
  void TakeTurn(Request* request, TimePoint now);
  void EndTurn(const Request& request, TimePoint now);
  [[nodiscard]] static bool IsBackground(ClassId id) {  // WeirFS's own work
    return id != kBestEffort && id < kFirstUserClass;
  }
  // A small request of somebody who has little under way, and waits for it. Nobody waits for each
  // answer of background work.
  [[nodiscard]] static bool IsLight(const Request& request) {
    return !IsBackground(request.queue) && FlowOrder::IsLight(request.in_flow);
  }
  // Of those that processors are kept from while others hurry.
  [[nodiscard]] static bool IsPaced(const ClassQueue& queue, const Request& request);
  void NoteHurry(const ClassQueue& queue, const Request& request, TimePoint now);
  // A disk with a head: wherever that was, a small read takes milliseconds.
  [[nodiscard]] bool ReadsAreFar(uint64_t bytes) const {
    return cost_model_.Alone(OpKind::kRead, bytes) >= Bursts::kFarRead;
  }
  void StampDeadline(ClassQueue* queue, Request* request, TimePoint now);
  // The next request for the device: in a free slot, or one in a hurry beyond the depth; or none.
  Request* NextForDevice(bool has_slot, TimePoint now);
  // The device is done with it: its slot is free, and its time is known.
  void LeaveDevice(Request* request, ClassQueue* queue, TimePoint now);
  void Measure(Request* request, TimePoint now);
  // What admission books for a request of that size.
  [[nodiscard]] double WorthOf(uint64_t bytes) const;
  [[nodiscard]] DiskEstimate::State DiskLoad(bool has_slot, TimePoint now) const;
  // Cost `device-time` under DSFQ: microseconds of the device, as the model has them (rule C7: what
  // was sent elsewhere is priced like the request that says so).
  [[nodiscard]] int64_t DeviceCostOf(const Request& request) const;
  void PriceElsewhere(Request* request) const;
  [[nodiscard]] std::unique_ptr<Dispatch> MakeDispatch() const;

  void BuildBoxes(TimePoint now);
  void SetPromise(ClassQueue* queue, TimePoint now);
  void PromiseDisk(ClassQueue* queue) const;
  [[nodiscard]] double IopsMax() const;
  void SetTransactions(ClassQueue* queue, bool reserved, TimePoint now);
  void SetCeiling(ClassQueue* queue, TimePoint now);
  void ResizeRoot(TimePoint now);
  void UpdateTotalWeight();
  void RetagAll(TimePoint now);
  void Expire(TimePoint now);
  void CloseSecond(TimePoint now);
  void StepMaximizer(TimePoint now);
  void RebaseTags(TimePoint now);
  [[nodiscard]] bool MaximizerActs() const;

  SchedulerConfig config_;
  uint32_t depth_ = SchedulerConfig::kAutoDepth;
  std::unordered_map<ClassId, std::unique_ptr<ClassQueue>> classes_;
  // The same by number, for Find: [number], as far as numbers are small, which they nearly all are.
  std::vector<ClassQueue*> numbered_;
  // Of removed classes that still have requests on the device.
  std::vector<std::unique_ptr<FlowOrder>> removed_flows_;
  ClassQueue* best_effort_ = nullptr;  // class 0

  ClassHeap<TimePoint, HeapSlot::kCeiling> held_;  // by their limit, until then
  std::unique_ptr<Guarantee> guarantee_;           // none: no guarantee stage
  std::unique_ptr<Surplus> surplus_;
  Dsfq* dsfq_ = nullptr;  // surplus_, when it is that
  ServiceTime service_time_;
  CostModel cost_model_;
  DepthControl depth_control_{&cost_model_};
  ProcessorPace processor_pace_;
  Anticipation anticipation_;
  Bursts bursts_;
  std::unique_ptr<Dispatch> dispatch_;
  RootGate gate_;
  BandwidthMaximizer maximizer_;
  ContractMeter contract_meter_;
  WaitMeter wait_meter_;
  DiskEstimate disk_estimate_;
  uint64_t booked_ = 0;  // of G0, by all contracts

  uint64_t next_sequence_ = 1;
  uint64_t queued_ = 0;
  uint64_t in_flight_ = 0;
  uint64_t in_flight_bytes_ = 0;
  uint64_t started_ = 0;      // and not done: in flight, or landed
  Duration landed_alone_{0};  // device time of what has landed
  int64_t largest_tokens_ = 0;
  int64_t blocked_tokens_ = 0;  // size of the head that the gate held back last, 0: none
  int64_t blocked_beside_ = 0;  // of one that would have passed it
  TimePoint bound_in_hurry_until_;
  bool paced_ = false;   // the head was held back for the processors
  TimePoint next_step_;  // until then they gather, see kStep
  double total_weight_ = 0;

  TimePoint second_start_;
  TimePoint next_second_;
  TimePoint next_expiry_ = TimePoint::Max();
};

}  // namespace weir::osd::qos
