#include "osd/qos/device/depth_control.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::osd::qos {
namespace {

constexpr double kPieceSeconds = 100e-6;
constexpr double kFixedPart = 0.06;  // of a piece's time that its fixed cost may be
constexpr uint64_t kPieceStep = 64 << 10;
constexpr uint64_t kFineSteps = 4;     // of any number; more: a power of two
constexpr double kSpare = 1.125;       // beyond what keeps the device busy
constexpr double kKeep = 0.995;        // of the typical request, from one to the next
constexpr double kSpanPart = 7.0 / 8;  // of a span: what is owed beyond it goes to others

}  // namespace

void DepthControl::KeepWithin(ClassId id, Duration span, TimePoint now) {
  const bool holds = now < span_until_;
  if (span == Duration::max()) return;
  if (static_cast<double>(span.count()) <= kSpare * typical_ns_) {
    if (holds && id == span_of_) span_until_ = now;
  } else if (!holds || id == span_of_ || span <= span_) {
    span_of_ = id;
    span_ = span;
    span_until_ = now + kShortFor;
  }
}

bool DepthControl::WorksTooLong(TimePoint now) const {
  if (now >= span_until_ || in_flight_ == 0) return false;
  return model_->WorkOf(bytes_ + bytes_ / in_flight_) > span_ * kSpanPart;
}

bool DepthControl::ProbeDue(TimePoint now) const {
  if (!IsShort(now) && !WorksTooLong(now)) return false;
  if (probes_ < kFirstProbes && model_->alone_samples() < kFirstProbes) return true;
  return now - std::max(probed_at_, model_->last_alone()) >= kProbeEvery;
}

Duration DepthControl::WorkOfFull() const {
  if (typical_ns_ == 0) return Duration::max() / 2;
  const double typical = SchedulerConfig::kAutoDepth * typical_ns_;
  const auto bytes = static_cast<double>(model_->Alone(OpKind::kWrite, kBytes).count());
  return Duration(static_cast<int64_t>(model_->use() * std::max(typical, bytes)));
}

bool DepthControl::HasSlot(TimePoint now) const {
  if (in_flight_ == 0) return true;
  if (probing_) return false;
  if (!IsShort(now) && !WorksTooLong(now)) return bytes_ < kBytes;
  if (ProbeDue(now)) return false;
  if (bytes_ < kAlwaysBytes) return true;
  if (bytes_ >= kBytes) return false;
  return static_cast<double>(alone_.count()) * model_->use() < kSpare * typical_ns_;
}

void DepthControl::ProbeIfDue(TimePoint now) {
  if (in_flight_ > 0 && !probing_) probing_ = ProbeDue(now);
}

bool DepthControl::HasSlotBeyond(const Request& request) const {
  if (probing_) return false;
  return EntersBeyond(request) && light_bytes_ + request.bytes <= kBeyondBytes;
}

void DepthControl::Submitted(Request* request, bool others_wait) {
  request->alone_estimate = model_->Alone(request->op, request->bytes);
  if (!others_wait || !EntersBeyond(*request)) {
    passed_ = Duration(0);
  } else if (!request->guaranteed) {
    passed_ += request->alone_estimate;
  }
  ++in_flight_;
  bytes_ += request->bytes;
  if (EntersBeyond(*request)) light_bytes_ += request->bytes;
  alone_ += request->alone_estimate;
  const auto alone = static_cast<double>(request->alone_estimate.count());
  typical_ns_ = std::max(kKeep * typical_ns_, alone);
}

void DepthControl::Completed(const Request& request, TimePoint now) {
  --in_flight_;
  bytes_ -= request.bytes;
  if (EntersBeyond(request)) light_bytes_ -= request.bytes;
  alone_ -= request.alone_estimate;
  // The request that completes an empty device's wait was alone if it was sent during the probe.
  if (probing_ && in_flight_ == 0) {
    if (probe_sent_) {
      probing_ = probe_sent_ = false;
      ++probes_;
      probed_at_ = now;
    } else {
      probe_sent_ = true;
    }
  }
}

uint64_t DepthControl::PieceBytes(TimePoint now) const {
  if (!IsShort(now)) return UINT64_MAX;
  const LinearFit* line = model_->Line(OpKind::kWrite);
  if (line == nullptr || line->per_byte() <= 0) return UINT64_MAX;
  const double for_time =
      std::max(0.0, kPieceSeconds / model_->use() - line->fixed()) / line->per_byte();
  const double for_cost = line->fixed() * (1 / kFixedPart - 1) / line->per_byte();
  const double wanted = std::max(for_time, for_cost);
  if (wanted >= static_cast<double>(kLargestRequest)) return UINT64_MAX;
  const auto steps = static_cast<uint64_t>(std::ceil(wanted / kPieceStep));
  // Applications write powers of two: pieces of 13/16 MiB are two requests for each MiB.
  return (steps > kFineSteps ? std::bit_ceil(steps) : std::max<uint64_t>(steps, 1)) * kPieceStep;
}

}  // namespace weir::osd::qos
