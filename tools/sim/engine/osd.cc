#include "tools/sim/engine/osd.h"

#include "common/base/check.h"

namespace weir::sim {

SimOsd::SimOsd(EventQueue* events, std::unique_ptr<Policy> policy, std::unique_ptr<Device> device,
               Done done)
    : events_(events),
      policy_(std::move(policy)),
      device_(std::move(device)),
      done_(std::move(done)) {
  device_->SetDone([this](Job* job) { Completed(job); });
  ArmTick();
}

osd::qos::Scheduler& SimOsd::scheduler() {
  osd::qos::Scheduler* scheduler = policy_->scheduler();
  WEIR_CHECK(scheduler != nullptr, "a baseline has no product scheduler");
  return *scheduler;
}

Duration SimOsd::busy_time() const {
  return busy_time_ + (busy_ ? events_->now() - noted_at_ : Duration(0));
}

void SimOsd::Send(Job* job) {
  policy_->Enqueue(&job->request, events_->now());
  if (on_arrival) on_arrival(*job);
  Pump();
}

void SimOsd::Pump() {
  for (;;) {
    const osd::qos::PullResult result = policy_->Pull(events_->now());
    if (result.request == nullptr) {
      NoteState();
      if (result.wake_at) ArmWake(*result.wake_at);
      return;
    }
    Job* job = Job::Of(result.request);
    if (on_dispatch) on_dispatch(*job);
    device_->Submit(job);
  }
}

void SimOsd::Completed(Job* job) {
  policy_->Completed(&job->request, events_->now());
  if (on_completion) on_completion(*job);
  done_(job);
  Pump();
}

void SimOsd::NoteState() {
  const TimePoint now = events_->now();
  if (idle_while_queued_) idle_time_ += now - noted_at_;
  if (busy_) busy_time_ += now - noted_at_;
  if (free_slot_while_queued_) free_slot_time_ += now - noted_at_;
  noted_at_ = now;
  busy_ = policy_->in_flight() > 0;
  idle_while_queued_ = !busy_ && policy_->queued() > 0;
  free_slot_while_queued_ = policy_->in_flight() < watched_depth_ && policy_->queued() > 0;
  saw_idle_while_queued_ |= idle_while_queued_;
}

void SimOsd::ArmWake(TimePoint when) {
  if (armed_ && wake_at_ <= when && wake_at_ > events_->now()) return;
  armed_ = true;
  wake_at_ = when;
  events_->At(when, [this, when] {
    if (wake_at_ != when) return;
    armed_ = false;
    Pump();
  });
}

void SimOsd::ArmTick() {
  const TimePoint when = policy_->NextTick();
  if (when == TimePoint::Max()) return;
  events_->At(when, [this] {
    policy_->Tick(events_->now());
    Pump();
    ArmTick();
  });
}

}  // namespace weir::sim
