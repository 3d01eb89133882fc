#include "osd/qos/scheduler.h"

#include "osd/qos/scheduler_impl.h"

namespace weir::osd::qos {

using Kind = Decision::Kind;

Scheduler::Scheduler(const SchedulerConfig& config, TimePoint now, DecisionRecorder* recorder)
    : impl_(std::make_unique<Impl>(config, now)), recorder_(recorder) {
  Note({.kind = Kind::kStart, .now = now, .config = &config});
}

Scheduler::~Scheduler() = default;

void Scheduler::Configure(const SchedulerConfig& config, TimePoint now) {
  Note({.kind = Kind::kConfigure, .now = now, .config = &config});
  impl_->Configure(config, now);
}

void Scheduler::SetClass(const ClassSpec& spec, TimePoint now) {
  Note({.kind = Kind::kSetClass, .now = now, .spec = &spec});
  impl_->SetClass(spec, now);
}

void Scheduler::RemoveClass(ClassId id, TimePoint now) {
  Note({.kind = Kind::kRemoveClass, .now = now, .class_id = id});
  impl_->RemoveClass(id, now);
}

void Scheduler::Enqueue(Request* request, TimePoint now) {
  Note({.kind = Kind::kEnqueue, .now = now, .request = request});
  impl_->Enqueue(request, now);
}

PullResult Scheduler::Pull(TimePoint now) {
  const PullResult pulled = impl_->Pull(now);
  Note({.kind = Kind::kPull, .now = now, .request = pulled.request});
  return pulled;
}

void Scheduler::Landed(Request* request, TimePoint now) {
  Note({.kind = Kind::kLanded, .now = now, .request = request});
  impl_->Landed(request, now);
}

void Scheduler::Completed(Request* request, TimePoint now) {
  Note({.kind = Kind::kCompleted, .now = now, .request = request});
  impl_->Completed(request, now);
}

bool Scheduler::Cancel(Request* request, TimePoint now) {
  Note({.kind = Kind::kCancel, .now = now, .request = request});
  return impl_->Cancel(request, now);
}

void Scheduler::Tick(TimePoint now) {
  Note({.kind = Kind::kTick, .now = now});
  impl_->Tick(now);
}

TimePoint Scheduler::NextTick() const {
  return impl_->NextTick();
}

std::vector<ClassCounters> Scheduler::Counters(TimePoint now) {
  Note({.kind = Kind::kCounters, .now = now});
  return impl_->Counters(now);
}

ServiceReport Scheduler::Measures() const {
  return impl_->Measures();
}

DiskEstimate::View Scheduler::Disk() const {
  return impl_->Disk();
}

void Scheduler::SetBooked(uint64_t bytes_per_s) {
  Note({.kind = Kind::kSetBooked, .now = {}, .amount = bytes_per_s});
  impl_->SetBooked(bytes_per_s);
}

void Scheduler::DoneOutside(uint64_t bytes) {
  Note({.kind = Kind::kDoneOutside, .now = {}, .amount = bytes});
  impl_->DoneOutside(bytes);
}

void Scheduler::ProcessorsWaited(Duration total, TimePoint now) {
  Note({.kind = Kind::kProcessorsWaited,
        .now = now,
        .amount = static_cast<uint64_t>(total.count())});
  impl_->ProcessorsWaited(total, now);
}

TimePoint Scheduler::LookAtProcessors() const {
  return impl_->LookAtProcessors();
}

uint64_t Scheduler::pace(TimePoint now) const {
  return impl_->pace(now);
}

uint64_t Scheduler::token_rate() const {
  return impl_->token_rate();
}

uint64_t Scheduler::ChunkBytes(TimePoint now) const {
  return impl_->ChunkBytes(now);
}

Duration Scheduler::ServiceEstimate(OpKind op, uint64_t bytes) const {
  return impl_->ServiceEstimate(op, bytes);
}

uint64_t Scheduler::queued() const {
  return impl_->queued();
}

uint64_t Scheduler::in_flight() const {
  return impl_->in_flight();
}

bool Scheduler::HasFreeSlot(TimePoint now) {
  Note({.kind = Kind::kHasFreeSlot, .now = now});
  return impl_->HasSlot(now);
}

std::optional<Duration> Scheduler::BurstPatience(const Request& request) const {
  return impl_->BurstPatience(request);
}

bool Scheduler::LandingFrees(TimePoint now) const {
  return impl_->LandingFrees(now);
}

bool Scheduler::InHurry(TimePoint now) const {
  return impl_->InHurry(now);
}

bool Scheduler::BoundInHurry(TimePoint now) const {
  return impl_->BoundInHurry(now);
}

}  // namespace weir::osd::qos
