#include "mds/service/fair_queue.h"

#include <algorithm>
#include <utility>

namespace weir::mds {

FairQueue::FairQueue(Clock& clock, Options options) : clock_(clock), options_(std::move(options)) {
  life_->queue = this;
}

FairQueue::~FairQueue() {
  Stop();
}

void FairQueue::Submit(const ClassOrder::Request& request, Work work) {
  auto operation = std::make_unique<Operation>();
  operation->work = std::move(work);
  Lock lock(mutex_);
  if (stopped_) return;
  operation->came_in = drains_;
  order_.Add(operation.release(), request, clock_.Now());
  if (draining_ || posted_) return;
  Drain(&lock, BeginLater() ? 1 : SIZE_MAX);
}

void FairQueue::TellSooner() {
  if (stopped_ || order_.NextAt() >= told_at_) return;
  told_at_ = order_.NextAt();
  if (options_.on_sooner) options_.on_sooner();
}

bool FairQueue::BeginLater() {
  if (!options_.post_here) return false;
  posted_ = options_.post_here([life = life_] {
    const std::lock_guard alive(life->mutex);
    if (life->queue != nullptr) life->queue->BeginSome();
  });
  return posted_;
}

void FairQueue::BeginSome() {
  Lock lock(mutex_);
  posted_ = false;
  Drain(&lock, kCostInTurn);
  if (!stopped_ && !draining_ && !posted_ && Next() != nullptr) (void)BeginLater();
}

void FairQueue::GiveBack(Operation* operation) {
  const std::unique_ptr<Operation> ended(operation);  // deleted without the lock
  Lock lock(mutex_);
  --begun_;
  order_.Done(operation);
  if (!handed_over_) DrainOrHandOver(&lock);
}

void FairQueue::Run() {
  Lock lock(mutex_);
  told_at_ = TimePoint{INT64_MIN};  // we look again ourselves
  DrainOrHandOver(&lock);
  told_at_ = order_.NextAt();
}

TimePoint FairQueue::NextAt() {
  const std::lock_guard lock(mutex_);
  told_at_ = order_.NextAt();
  return told_at_;
}

void FairQueue::Renew(const std::function<ClassOrder::Terms(ClassId)>& terms_of) {
  const std::lock_guard lock(mutex_);
  order_.Renew(terms_of, clock_.Now());
  told_at_ = TimePoint::Max();
  if (!stopped_ && options_.on_sooner) options_.on_sooner();
}

FairQueue::Operation* FairQueue::Next() {
  if (stopped_) return nullptr;
  ClassOrder::Item* item = nullptr;
  if (begun_ < options_.depth) {
    item = order_.Next(clock_.Now());
  } else if (begun_ < 2 * options_.depth) {
    item = order_.NextOfLittle(clock_.Now());
  }
  return static_cast<Operation*>(item);
}

void FairQueue::Begin(Operation* operation, Lock* lock) {
  order_.Take(operation, clock_.Now());
  ++begun_;
  Work work = std::move(operation->work);
  lock->unlock();
  work({static_cast<void*>(operation),
        [this](void* ended) { GiveBack(static_cast<Operation*>(ended)); }});
  work = nullptr;  // may hold the turn
  lock->lock();
}

void FairQueue::Drain(Lock* lock, size_t most) {
  if (draining_) return;
  draining_ = true;
  for (size_t cost = 0; cost < most;) {
    Operation* const next = Next();
    if (next == nullptr) break;
    cost += next->cost;
    next->delayed = next->came_in != drains_;
    Begin(next, lock);
  }
  if (!posted_) ++drains_;  // what is left has to wait
  draining_ = false;
  TellSooner();
}

void FairQueue::DrainOrHandOver(Lock* lock) {
  if (draining_) return;
  Drain(lock, options_.hand_over ? kCostForOthers : SIZE_MAX);
  if (handed_over_ || posted_ || !options_.hand_over || Next() == nullptr) return;
  handed_over_ = true;
  lock->unlock();
  options_.hand_over([this] {
    Lock again(mutex_);
    handed_over_ = false;
    DrainOrHandOver(&again);
  });
  lock->lock();
}

void FairQueue::DropSession(uint64_t session) {
  std::vector<std::unique_ptr<Operation>> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  for (ClassOrder::Item* item : order_.DropSession(session)) {
    dropped.emplace_back(static_cast<Operation*>(item));
  }
}

void FairQueue::Stop() {
  {
    const std::lock_guard alive(life_->mutex);  // waits for BeginSome
    life_->queue = nullptr;
  }
  std::vector<std::unique_ptr<Operation>> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (ClassOrder::Item* item : order_.DropAll()) {
    dropped.emplace_back(static_cast<Operation*>(item));
  }
}

std::vector<ClassOrder::Load> FairQueue::Loads() const {
  const std::lock_guard lock(mutex_);
  return order_.Loads();
}

std::vector<FairQueue::FlowsOfClass> FairQueue::Flows(size_t most) {
  std::vector<ClassId> classes;
  {
    const std::lock_guard lock(mutex_);
    classes = order_.Classes();
  }
  std::vector<FlowsOfClass> all;
  for (const ClassId id : classes) {
    FlowMeter::Look look;
    {
      const std::lock_guard lock(mutex_);
      look = order_.FlowsOf(id, clock_.Now());
    }
    FlowMeter::Report report = FlowMeter::ReportOf(look, most);
    if (report.users_seen > 0) all.push_back({id, std::move(report)});
  }
  return all;
}

}  // namespace weir::mds
