#include "common/net/transport_loop.h"

#include <algorithm>
#include <utility>

namespace weir::net {

std::shared_ptr<TransportLoop> TransportLoop::Make(Reactor& reactor, Deliver deliver) {
  return std::shared_ptr<TransportLoop>(new TransportLoop(reactor, std::move(deliver)));
}

void TransportLoop::Send(PeerId peer, Message message) {
  if (reactor_.InLoop()) {
    DeliverBrought();
    if (!ended_) deliver_(peer, std::move(message));
    return;
  }
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = brought_.empty();
    brought_.push_back({peer, std::move(message)});
  }
  if (first) reactor_.Post([self = shared_from_this()] { self->DeliverBrought(); });
}

void TransportLoop::DeliverBrought() {
  {
    const std::lock_guard lock(mutex_);
    delivering_.swap(brought_);
  }
  for (Sent& sent : delivering_) {
    if (!ended_) deliver_(sent.peer, std::move(sent.message));
  }
  delivering_.clear();
}

void TransportLoop::Post(Loop::Task task) {
  reactor_.Post([self = shared_from_this(), task = std::move(task)] {
    if (!self->ended_) task();
  });
}

void TransportLoop::RunAfter(Duration delay, Loop::Task task) {
  const TimePoint now = SystemClock::Get().Now();
  const bool here = reactor_.InLoop();
  {
    const std::lock_guard lock(mutex_);
    timer_at_ = delay > TimePoint::Max() - now ? TimePoint::Max() : now + delay;
    timer_task_ = std::move(task);
    if (!here && std::exchange(arming_, true)) return;
  }
  here ? ArmTimer() : Post([this] { ArmTimer(); });
}

// The latest, whoever set it.
void TransportLoop::ArmTimer() {
  TimePoint at;
  Loop::Task task;
  {
    const std::lock_guard lock(mutex_);
    arming_ = false;
    at = timer_at_;
    task.swap(timer_task_);
  }
  if (!task || ended_) return;
  reactor_.CancelTimer(timer_);
  timer_ = reactor_.RunAt(at, std::move(task));
}

void TransportLoop::End() {
  ended_ = true;
  reactor_.CancelTimer(timer_);
}

}  // namespace weir::net
