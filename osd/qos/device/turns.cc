#include "osd/qos/device/turns.h"

#include "common/qos/lane.h"

namespace weir::osd::qos {

using Part = Request::Part;

void DeviceTurns::SetAnticipates(bool anticipates) {
  anticipates_ = anticipates;
  anticipation_.Switch(anticipates);
}

void DeviceTurns::Started(Request* request, bool light_read, bool far, TimePoint now) {
  anticipation_.Submitted(request->queue, request->arrival, request->elsewhere_tokens > 0);
  if (anticipates_) return;
  if (!light_read) {
    if (!bursts_.Submitted(request->bytes, now)) return;
    const bool lands = request->op == OpKind::kWrite && LaneOf(request->bytes) == Lane::kBulk;
    request->part = lands ? Part::kLanding : Part::kBurst;
    if (lands) bursts_.Lands();
  } else if (far) {
    bursts_.ReadSubmitted(now);
    request->part = Part::kRead;
  }
}

void DeviceTurns::Landed(Request* request) {
  if (request->part != Part::kLanding) return;
  bursts_.Landed();
  request->part = Part::kBurst;
}

void DeviceTurns::Completed(const Request& request, ClassId owner, bool light_read,
                            bool others_work, TimePoint now) {
  if (request.part == Part::kRead) bursts_.ReadDone(now);
  if (request.part == Part::kLanding) bursts_.Landed();
  if (request.part >= Part::kLanding) bursts_.Done();
  if (light_read) anticipation_.Completed(owner, others_work, now);
}

std::optional<Duration> DeviceTurns::Patience(const Request& request, bool more) const {
  if (request.part < Part::kLanding) return std::nullopt;
  return bursts_.Patience(more);
}

}  // namespace weir::osd::qos
