#include "osd/qos/device/device.h"

#include <algorithm>

#include "common/qos/lane.h"
#include "osd/qos/control/wait_meter.h"

namespace weir::osd::qos {

using Part = Request::Part;

Device::Device(const SchedulerConfig& config, TimePoint now)
    : service_time_(config.cvc.estimate_part, config.cvc.first_estimate), estimate_(now) {
  Configure(config);
}

void Device::Configure(const SchedulerConfig& config) {
  depth_ = config.EffectiveDepth();
  chosen_depth_ = config.depth;
  adapts_ = config.depth == 0 && config.dispatch == DispatchKind::kCvc &&
            config.surplus != SurplusKind::kPass;
  rents_ = config.depth == 0 && config.guarantee == GuaranteeKind::kHtb &&
           config.surplus != SurplusKind::kCooperative;
  request_unit_ = config.token_rate > 0 ? config.RequestUnit() : 0;
  anticipation_.Switch(config.anticipation);
}

bool Device::HasSlot(TimePoint now) const {
  if (in_flight() >= depth_) return false;
  if (rented()) return in_flight() == 0;
  if (adapts_) return depth_control_.HasSlot(now);
  return chosen_depth_ > 0 || in_flight() == 0 || depth_control_.bytes() < DepthControl::kBytes;
}

void Device::Asked(const ClassQueue& queue, const Request& request, TimePoint now) {
  if (!adapts_) return;
  const Duration bound = queue.spec.service.bound;
  const bool bounded = bound > Duration(0);
  const bool light = IsLight(request);
  if (!light && !(bounded && 2 * depth_control_.WorkOfFull() > bound)) return;
  // Light ones do not keep each other waiting; a class does not keep itself waiting.
  const uint64_t here = depth_control_.bytes();
  const bool others_work =
      light ? here > depth_control_.light_bytes() : here + queue.landed_bytes > queue.device_bytes;
  if (!others_work) return;
  depth_control_.KeepShort(now);
  // One that keeps much under way waits for itself, and is not helped.
  if (bounded && light) guarded_until_ = now + DepthControl::kShortFor;
}

void Device::KeepWithin(const ClassQueue& queue, Duration span, TimePoint now) {
  const bool others_work = depth_control_.bytes() + queue.landed_bytes > queue.device_bytes;
  // One at a time is not a broken promise (control/promise_meter.h).
  if (TurnsDecide(now) || !others_work || queue.under_way <= 1) return;
  depth_control_.KeepWithin(queue.id(), span, now);
}

void Device::Started(ClassQueue* queue, Request* request, bool others_wait, TimePoint now) {
  cost_model_.Submitted(*request, in_flight());
  depth_control_.Submitted(request, others_wait && !IsKept(now) && !TurnsDecide(now));
  request->part = Part::kNone;
  if (adapts_ && !rented()) TakeTurn(request, now);  // who rents time has his turns by it
  request->kept_short = IsShort(now) && !ReadsAreFar(kPage);
  queue->device_bytes += request->bytes;
  ++queue->device_ops;
  ++started_;
  request->dispatched = now;
  request->landed = false;
}

void Device::TakeTurn(Request* request, TimePoint now) {
  anticipation_.Submitted(request->queue, request->arrival, request->elsewhere_tokens > 0);
  if (anticipation_.on()) return;
  if (!IsLightRead(*request)) {
    if (!bursts_.Submitted(request->bytes, now)) return;
    const bool lands = request->op == OpKind::kWrite && LaneOf(request->bytes) == Lane::kBulk;
    request->part = lands ? Part::kLanding : Part::kBurst;
    if (lands) bursts_.Lands();
  } else if (ReadsAreFar(request->bytes)) {
    bursts_.ReadSubmitted(now);
    request->part = Part::kRead;
  }
}

void Device::Landed(ClassQueue* queue, Request* request, TimePoint now) {
  Leave(queue, request, now);
  request->landed = true;
  if (request->part == Part::kLanding) {
    bursts_.Landed();
    request->part = Part::kBurst;
  }
  queue->landed_bytes += request->bytes;
  ++queue->landed_ops;
  landed_alone_ += request->alone_estimate;
}

void Device::Completed(ClassQueue* queue, Request* request, TimePoint now) {
  if (request->landed) {
    queue->landed_bytes -= request->bytes;
    --queue->landed_ops;
    landed_alone_ -= request->alone_estimate;
  } else {
    Leave(queue, request, now);
  }
  if (request->part == Part::kRead) bursts_.ReadDone(now);
  if (request->part == Part::kLanding) bursts_.Landed();
  if (request->part >= Part::kLanding) bursts_.Done();
  const bool others_work = started_ > queue->device_ops;
  if (IsLightRead(*request)) anticipation_.Completed(queue->id(), others_work, now);
  queue->device_bytes -= request->bytes;
  --queue->device_ops;
  --started_;
}

// Its slot is free, and its time is known.
void Device::Leave(ClassQueue* queue, Request* request, TimePoint now) {
  depth_control_.Completed(*request, now);
  request->device_time = cost_model_.Completed(*request, now);
  request->alone = cost_model_.last_was_alone();
  service_time_.Add(request->op, request->device_time);
  estimate_.Done(WorthOf(request->bytes));
  const uint64_t own = queue->device_bytes - queue->landed_bytes;
  const uint64_t here = depth_control_.bytes();
  const uint64_t others = here - std::min(here, own - std::min(own, request->bytes));
  WaitMeter::Completed(queue, *request, others, now);
}

}  // namespace weir::osd::qos
