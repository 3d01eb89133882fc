#include "osd/qos/scheduler.h"

#include "osd/qos/scheduler_impl.h"

namespace weir::osd::qos {

Scheduler::Scheduler(const SchedulerConfig& config, TimePoint now)
    : impl_(std::make_unique<Impl>(config, now)) {}

Scheduler::~Scheduler() = default;

void Scheduler::Configure(const SchedulerConfig& config, TimePoint now) {
  impl_->Configure(config, now);
}

void Scheduler::SetClass(const ClassSpec& spec, TimePoint now) {
  impl_->SetClass(spec, now);
}

void Scheduler::RemoveClass(ClassId id, TimePoint now) {
  impl_->RemoveClass(id, now);
}

void Scheduler::Enqueue(Request* request, TimePoint now) {
  impl_->Enqueue(request, now);
}

PullResult Scheduler::Pull(TimePoint now) {
  return impl_->Pull(now);
}

void Scheduler::Landed(Request* request, TimePoint now) {
  impl_->Landed(request, now);
}

void Scheduler::Completed(Request* request, TimePoint now) {
  impl_->Completed(request, now);
}

bool Scheduler::Cancel(Request* request, TimePoint now) {
  return impl_->Cancel(request, now);
}

void Scheduler::Tick(TimePoint now) {
  impl_->Tick(now);
}

TimePoint Scheduler::NextTick() const {
  return impl_->NextTick();
}

std::vector<ClassCounters> Scheduler::Counters(TimePoint now) {
  return impl_->Counters(now);
}

ServiceReport Scheduler::Measures() const {
  return impl_->Measures();
}

DiskEstimate::View Scheduler::Disk() const {
  return impl_->Disk();
}

void Scheduler::SetBooked(uint64_t bytes_per_s) {
  impl_->SetBooked(bytes_per_s);
}

void Scheduler::DoneOutside(uint64_t bytes) {
  impl_->DoneOutside(bytes);
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
  return impl_->HasSlot(now);
}

bool Scheduler::IsPaced() const {
  return impl_->IsPaced();
}

bool Scheduler::InHurry(TimePoint now) const {
  return impl_->InHurry(now);
}

}  // namespace weir::osd::qos
