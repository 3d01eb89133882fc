// How the scheduler meets the device: depth, deadlines, and what it learns from completions.
#include <algorithm>

#include "common/base/check.h"
#include "osd/qos/dispatch/cscan.h"
#include "osd/qos/dispatch/cvc.h"
#include "osd/qos/dispatch/fifo.h"
#include "osd/qos/dispatch/virtual_clock.h"
#include "osd/qos/scheduler_impl.h"

namespace weir::osd::qos {

std::unique_ptr<Dispatch> Scheduler::Impl::MakeDispatch() const {
  // Wd = D, not the 4 D of algorithms §7: what is decided ahead leaves its class's queue. A class
  // with fewer requests under way than D + Wd would have nothing queued any more, and its share
  // would go to whoever has.
  constexpr size_t kWindowDepths = 1;
  switch (config_.dispatch) {
    case DispatchKind::kFifo:
      return std::make_unique<Fifo>();
    case DispatchKind::kCscan:
      return std::make_unique<Cscan>();
    case DispatchKind::kVc:
    case DispatchKind::kCvc:
      break;
  }
  CvcConfig config = config_.cvc;
  // Behind earlier stages only what is owed or in a hurry has a deadline, and that goes first
  // (§7 rule 3) however late it is; the disk cannot collapse, as the rest stays in C-SCAN's order.
  if (!PassesAll()) config.late_mode = false;
  return std::make_unique<Cvc>(config, config_.dispatch == DispatchKind::kVc, &service_time_,
                               kWindowDepths);
}

// Depth auto follows the device where a class in a hurry can leave the window first.
bool Scheduler::Impl::Adapts() const {
  return config_.depth == 0 && config_.dispatch == DispatchKind::kCvc && !PassesAll();
}

bool Scheduler::Impl::HasSlot(TimePoint now) {
  if (in_flight_ >= depth_) return false;
  if (Adapts()) return depth_control_.HasSlot(now);
  return config_.depth > 0 || in_flight_ == 0 || in_flight_bytes_ < DepthControl::kBytes;
}

bool Scheduler::Impl::IsPaced(const ClassQueue& queue, const Request& request) {
  return queue.spec.service.bound == Duration(0) && !IsLight(request);
}

void Scheduler::Impl::NoteHurry(const ClassQueue& queue, const Request& request, TimePoint now) {
  if (!Adapts()) return;
  const bool bounded = queue.spec.service.bound > Duration(0);
  const bool light = IsLight(request);
  // Light ones do not keep each other waiting; a class does not make itself hurry.
  const bool others_work = light ? in_flight_bytes_ > depth_control_.express_bytes()
                                 : in_flight_bytes_ + queue.landed_bytes > queue.device_bytes;
  if (!others_work || !(bounded || light)) return;
  depth_control_.Hurried(now);
  // One that keeps much under way waits for itself, and is not helped.
  if (!bounded || !light) return;
  bound_in_hurry_until_ = now + DepthControl::kHurryLasts;
  if (dsfq_ != nullptr) processor_pace_.Hurried(now);
}

void Scheduler::Impl::TakeTurn(Request* request, TimePoint now) {
  request->turn = Request::Turn::kNone;
  if (!Adapts() || config_.anticipation) return;
  if (request->op != OpKind::kRead || !IsLight(*request)) {
    if (!bursts_.Submitted(request->bytes, now)) return;
    const bool lands = request->op == OpKind::kWrite && request->bytes >= kLandingBytes;
    request->turn = lands ? Request::Turn::kLanding : Request::Turn::kBurst;
    if (lands) bursts_.Lands();
  } else if (ReadsAreFar(request->bytes)) {
    bursts_.ReadSubmitted(now);
    request->turn = Request::Turn::kRead;
  }
}

void Scheduler::Impl::EndTurn(const Request& request, TimePoint now) {
  if (request.turn == Request::Turn::kRead) bursts_.ReadDone(now);
  if (request.turn == Request::Turn::kLanding) bursts_.Landed();
  if (request.turn >= Request::Turn::kLanding) bursts_.Done();
}

void Scheduler::Impl::StampDeadline(ClassQueue* queue, Request* request, TimePoint now) {
  // Deadlines protect what is promised: behind a guarantee stage that is what it released, not what
  // the class gets as surplus. Class 0 has none (rule 6).
  const bool promised = PassesAll() || request->guaranteed;
  if (promised && queue->id() != kBestEffort) {
    StampFinishTime(queue, request, config_.cvc.ahead_max, now);
  } else {
    request->finish_time = TimePoint::Max();
  }
  // Who is light waits for each answer before it asks again: its turn has come, so now.
  if (Adapts() && IsLight(*request)) {
    request->finish_time = std::min(request->finish_time, now);
  }
}

Request* Scheduler::Impl::NextForDevice(bool has_slot, TimePoint now) {
  if (dispatch_->size() == 0) return nullptr;
  const bool overtaken = Adapts() && depth_control_.Overtaken();
  if (has_slot && !IsKept(now)) {
    const bool by_address = overtaken || (Adapts() && depth_control_.Probes());
    return dispatch_->Next({now, in_flight_, by_address});
  }
  if (!Adapts()) return nullptr;
  Request* urgent = dispatch_->Urgent();
  if (urgent == nullptr || (overtaken && !urgent->guaranteed) ||
      !(has_slot || depth_control_.HasHurriedSlot(*urgent)))
    return nullptr;
  dispatch_->Remove(urgent);
  return urgent;
}

void Scheduler::Impl::Landed(Request* request, TimePoint now) {
  WEIR_CHECK(request->stage == Request::Stage::kDevice && !request->landed, "lands once");
  ClassQueue* queue = OwnerOf(*request);
  wait_meter_.Advance(queue, now);
  LeaveDevice(request, queue, now);
  request->landed = true;
  if (request->turn == Request::Turn::kLanding) {
    bursts_.Landed();
    request->turn = Request::Turn::kBurst;
  }
  queue->landed_bytes += request->bytes;
  landed_alone_ += request->alone_estimate;
}

void Scheduler::Impl::LeaveDevice(Request* request, ClassQueue* queue, TimePoint now) {
  --in_flight_;
  in_flight_bytes_ -= request->bytes;
  Measure(request, now);
  disk_estimate_.Done(WorthOf(request->bytes));
  const uint64_t own = queue->device_bytes - queue->landed_bytes;
  const uint64_t own_bytes = std::min(in_flight_bytes_, own - std::min(own, request->bytes));
  WaitMeter::Completed(queue, *request, in_flight_bytes_ - own_bytes, now);
}

void Scheduler::Impl::Measure(Request* request, TimePoint now) {
  depth_control_.Completed(*request, now);
  request->device_time = cost_model_.Completed(*request, now);
  request->alone = cost_model_.last_was_alone();
  service_time_.Add(request->op, request->device_time);
}

double Scheduler::Impl::WorthOf(uint64_t bytes) const {
  const auto size = static_cast<double>(bytes);
  return config_.token_rate == 0 ? size : std::max(size, config_.RequestUnit());
}

// Without a slot, and with somebody who waits for nothing else.
DiskEstimate::State Scheduler::Impl::DiskLoad(bool has_slot, TimePoint now) const {
  const bool wait = dispatch_->size() > 0 || (queued_ > 0 && held_.empty());
  if (has_slot || !wait || RateBlocks()) return DiskEstimate::State::kIdle;
  const bool hurried = Adapts() && depth_control_.InHurry(now);
  return hurried ? DiskEstimate::State::kHurried : DiskEstimate::State::kLimits;
}

int64_t Scheduler::Impl::DeviceCostOf(const Request& request) const {
  const Duration busy = cost_model_.Busy(request.op, request.bytes);
  // Before anything is known, a byte per nanosecond: only the ratio of costs matters.
  const auto ns = busy > Duration(0) ? busy.count() : static_cast<int64_t>(request.bytes);
  return std::max<int64_t>(1, ns / 1000);
}

void Scheduler::Impl::PriceElsewhere(Request* request) const {
  if (dsfq_ == nullptr) return;
  const double price =
      static_cast<double>(request->cost) / static_cast<double>(TokensOf(request->bytes));
  request->elsewhere = static_cast<int64_t>(static_cast<double>(request->elsewhere) * price);
}

}  // namespace weir::osd::qos
