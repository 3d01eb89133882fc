#include "osd/qos/scheduler_impl.h"

#include <algorithm>

#include "common/base/check.h"
#include "osd/qos/control/promise_meter.h"
#include "osd/qos/surplus/dsfq.h"

namespace weir::osd::qos {
namespace {

// Delays come over the network; beyond this they mean the same and only invite overflow.
constexpr int64_t kElsewhereMax = int64_t{1} << 40;

// How long a class counts as one that has just come back.
constexpr Duration kReturning = std::chrono::milliseconds(100);

}  // namespace

ClassQueue* Scheduler::Impl::Find(ClassId id) const {
  if (id.value < kNumbered) [[likely]] {
    ClassQueue* queue = id.value < numbered_.size() ? numbered_[id.value] : nullptr;
    return queue == nullptr ? best_effort_ : queue;
  }
  const auto found = classes_.find(id);
  return found == classes_.end() ? best_effort_ : found->second.get();
}

ClassQueue* Scheduler::Impl::OwnerOf(const Request& request) {
  ClassQueue* queue = Find(request.queue);
  return request.sequence < queue->first_sequence ? best_effort_ : queue;
}

int64_t Scheduler::Impl::CostOf(const Request& request) const {
  if (config_.cost == CostKind::kRequests) return 1;
  if (config_.cost == CostKind::kDeviceTime && dsfq_ != nullptr) return DeviceCostOf(request);
  return TokensOf(request.bytes);
}

void Scheduler::Impl::Enqueue(Request* request, TimePoint now) {
  WEIR_CHECK(request->stage == Request::Stage::kOutside, "a request is enqueued once");
  ClassQueue* queue = Find(request->class_id);
  wait_meter_.Advance(queue, now);
  request->queue = queue->id();
  request->stage = Request::Stage::kQueued;
  request->arrival = now;
  WaitMeter::Arrived(*queue, request);
  request->sequence = next_sequence_++;
  request->cost = CostOf(*request);
  request->account = Request::Account::kNone;
  request->elsewhere = std::clamp<int64_t>(request->elsewhere, 0, kElsewhereMax);
  surplus_->Arrived(request);

  const bool returns = ReturnsFromIdle(queue, now);
  ++queued_;
  ++queue->under_way;
  ++queue->counters.queued_ops;
  queue->counters.queued_bytes += request->bytes;
  queue->counters.arrived_bytes += request->bytes;

  const bool is_head = queue->requests.empty();
  const int64_t tokens = TokensOf(request->bytes);
  const bool is_largest = tokens > queue->largest_tokens;
  queue->requests.PushBack(request);
  JoinFlow(queue, request);
  if (queue->transactions) queue->transactions->Arrived(request, now);
  if (!is_head) surplus_->Grew(queue);
  contract_meter_.Arrived(queue, *request, now);
  NoteDemand(queue, now);
  NoteHurry(*queue, *request, now);
  if (is_largest) NoteSize(queue, tokens, now);
  if (is_head && queue->ceiling && queue->released + queue->device_ops == 0) {
    queue->ceiling->Refill(now);
    queue->ceiling->CutAt(queue->largest_tokens);
  }
  request->elsewhere_tokens = 0;
  if (request->elsewhere > 0) CountElsewhere(queue, request);
  if (config_.cost == CostKind::kDeviceTime) PriceElsewhere(request);
  if (returns) dsfq_->ForgiveIdle(queue, request);
  // Buckets that grew or were drained move the head even when it is not new.
  const bool leads = queue->flows->First() == &request->in_flow;
  const bool may_lead = leads || is_largest || request->elsewhere > 0 || queue->transactions;
  if (may_lead) Place(queue, now);
}

void Scheduler::Impl::JoinFlow(ClassQueue* queue, Request* request) {
  const Duration busy = cost_model_.Busy(request->op, request->bytes);
  // Before anything is known, a byte per nanosecond: only the ratio of costs matters.
  const auto bytes = Duration(static_cast<int64_t>(request->bytes));
  queue->flows->Add(&request->in_flow, FlowOf(*request), request->bytes,
                    busy > Duration(0) ? busy : bytes);
}

bool Scheduler::Impl::HeadIsStale(const ClassQueue& queue) {
  return !queue.requests.empty() && queue.flows->First() != &queue.requests.front()->in_flow;
}

void Scheduler::Impl::BringFlowForward(ClassQueue* queue) {
  if (HeadIsStale(*queue)) queue->requests.MoveToFront(Request::Of(queue->flows->First()));
}

// The request that tells of the time before may be overtaken on its way by a later one, so a class
// returns for a moment.
bool Scheduler::Impl::ReturnsFromIdle(ClassQueue* queue, TimePoint now) const {
  if (dsfq_ == nullptr || config_.reset_idle <= Duration(0)) return false;
  if (queue->under_way == 0 && now - queue->idle_since >= config_.reset_idle) {
    queue->returned_at = now;
  }
  return queue->returned_at && now - *queue->returned_at < kReturning;
}

void Scheduler::Impl::NoteGone(ClassQueue* queue, TimePoint now) {
  if (--queue->under_way == 0) queue->idle_since = now;
}

void Scheduler::Impl::NoteSize(ClassQueue* queue, int64_t tokens, TimePoint now) {
  queue->largest_tokens = tokens;
  if (guarantee_) guarantee_->PromiseChanged(queue, now);
  SetCeiling(queue, now);
  largest_tokens_ = std::max(largest_tokens_, tokens);
  ResizeRoot(now);
}

void Scheduler::Impl::CountElsewhere(ClassQueue* queue, Request* request) {
  // Buckets count KiB. Under cost `requests` the others were, as far as we know, like this one.
  const int64_t own = TokensOf(request->bytes);
  const int64_t tokens =
      request->elsewhere * (config_.cost == CostKind::kRequests ? own : int64_t{1});
  request->elsewhere_tokens = tokens;
  if (queue->promise_total) {
    // How many requests that was, each taken to be as large as the one that tells of them.
    const double requests = static_cast<double>(tokens) / static_cast<double>(own);
    CountService(queue, static_cast<uint64_t>(tokens) * kTokenBytes, requests);
  }
}

// What went elsewhere is paid when the request goes, not when it comes: what waits here when a
// class moves to other OSDs then still goes at the pace of all of it.
void Scheduler::Impl::PayLimit(ClassQueue* queue, const Request& request, TimePoint now) {
  TokenBucket& ceiling = *queue->ceiling;
  ceiling.Refill(now);
  ceiling.Take(TokensOf(request.bytes));
  if (!queue->limit_total) return;
  ceiling.TakeElsewhere(-2 * BucketCap(ceiling.rate(), queue->largest_tokens),
                        request.elsewhere_tokens);
}

void Scheduler::Impl::Withdraw(ClassQueue* queue) {
  if (guarantee_) guarantee_->Withdraw(queue);
  surplus_->Withdraw(queue);
}

void Scheduler::Impl::Place(ClassQueue* queue, TimePoint now) {
  wait_meter_.Advance(queue, now);
  PlaceHead(queue, now);
  WaitMeter::Placed(queue, held_.Contains(*queue));
}

void Scheduler::Impl::PlaceHead(ClassQueue* queue, TimePoint now) {
  if (queue->requests.empty()) {
    held_.Remove(queue);
    Withdraw(queue);
    return;
  }
  BringFlowForward(queue);
  if (queue->ceiling) {
    const Request& head = *queue->requests.front();
    queue->ceiling->Refill(now);
    const TimePoint due = queue->ceiling->CoversAt(TokensOf(head.bytes));
    if (due > now) {
      Withdraw(queue);
      held_.Put(queue, due, head.sequence);
      return;
    }
  }
  if (held_.Contains(*queue)) {
    held_.Remove(queue);
    surplus_->OfferAgain(queue);
  } else {
    surplus_->Offer(queue);
  }
  if (guarantee_) guarantee_->Offer(queue, now);
}

PullResult Scheduler::Impl::Pull(TimePoint now) {
  if (now >= next_expiry_) Expire(now);
  surplus_->SetTime(now);
  const bool has_slot = HasSlot(now);
  FillWindow(has_slot, now);
  wait_meter_.SetBlocks(blocked_tokens_ > 0, paced_);
  PullResult result;
  Request* next = NextForDevice(has_slot, now);
  if (next != nullptr) {
    result.request = Submit(next, now);
  } else if (has_slot) {
    result.wake_at = WakeAt(now);
  }
  const bool capped = has_slot && result.request == nullptr && blocked_tokens_ > 0;
  maximizer_.Observe(capped, now);
  disk_estimate_.Observe(DiskLoad(has_slot, now), now);
  return result;
}

void Scheduler::Impl::FillWindow(bool has_slot, TimePoint now) {
  const size_t limit =
      PassesAll() ? SIZE_MAX : std::max<size_t>(dispatch_->Capacity(depth_), has_slot ? 1 : 0);
  blocked_tokens_ = blocked_beside_ = 0;
  paced_ = false;
  while (ReleaseOne(dispatch_->size() < limit, now)) {
  }
}

// Without room in the window only what will leave it first, where deadlines decide who does: the
// owed, and classes in a hurry.
bool Scheduler::Impl::ReleaseOne(bool has_room, TimePoint now) {
  if (!has_room && !Adapts()) return false;
  while (!held_.empty() && held_.TopKey() <= now) Place(held_.Top(), now);
  if (guarantee_) {
    if (ClassQueue* owed = guarantee_->Pick(now); owed != nullptr) {
      BringForward(owed, now);
      Release(owed, Turn::kOwed, now);
      return true;
    }
  }
  ClassQueue* next = surplus_->Pick();
  if (next == nullptr) return false;
  if (!MayGo(*next, has_room, now)) return Adapts() && ReleaseBeside(now);
  Release(next, Turn::kSurplus, now);
  return true;
}

bool Scheduler::Impl::ReleaseBeside(TimePoint now) {
  ClassQueue* small = surplus_->PickBeside(paced_);
  while (small != nullptr && !IsLight(*small->requests.front())) {
    surplus_->NotBeside(small);
    small = surplus_->PickBeside(paced_);
  }
  if (small == nullptr) return false;
  const int64_t tokens = TokensOf(small->requests.front()->bytes);
  if (!gate_.Admits(tokens, now)) {
    blocked_beside_ = tokens;
    return false;
  }
  Release(small, paced_ ? Turn::kFree : Turn::kSurplus, now);
  return true;
}

bool Scheduler::Impl::MayGo(const ClassQueue& queue, bool has_room, TimePoint now) {
  const bool full =
      !has_room || IsKept(now) || (dispatch_->bytes() >= kWindowBytes && !PassesAll());
  const Request& head = *queue.requests.front();
  if (full && !(Adapts() && IsLight(head) && dispatch_->express_bytes() < kLightBytes)) {
    return false;
  }
  const int64_t tokens = TokensOf(head.bytes);
  if (!RootAdmits(queue, tokens, now)) {
    blocked_tokens_ = tokens;
  } else if (IsPaced(queue, head) && !processor_pace_.Admits(now)) {
    paced_ = true;
  } else {
    return true;
  }
  return false;
}

bool Scheduler::Impl::RootAdmits(const ClassQueue& queue, int64_t tokens, TimePoint now) {
  const bool admitted = gate_.Admits(tokens, now);
  if (!InHurry(now) || IsLight(*queue.requests.front())) return admitted;
  if (now < next_step_) return false;
  if (!admitted) next_step_ = now + kStep;
  return admitted;
}

// The request that the class is owed for is its oldest, or the head of one of its transactions.
void Scheduler::Impl::BringForward(ClassQueue* queue, TimePoint now) {
  if (!queue->transactions) return;
  Request* owed = queue->transactions->Owed(now);
  if (owed == nullptr || owed == queue->requests.front()) return;
  queue->requests.MoveToFront(owed);
  surplus_->Offer(queue);
}

void Scheduler::Impl::Release(ClassQueue* queue, Turn turn, TimePoint now) {
  const bool guaranteed = turn == Turn::kOwed;
  wait_meter_.Advance(queue, now);
  wait_meter_.Released(queue, queue->requests.front(), now);
  const int64_t tokens = TokensOf(queue->requests.front()->bytes);
  surplus_->Released(queue, turn != Turn::kSurplus);
  if (guaranteed) guarantee_->Take(queue, tokens, now);
  const int64_t elsewhere = queue->requests.front()->elsewhere_tokens;
  if (guarantee_ && queue->promise_total) {
    guarantee_->ServedElsewhere(queue, elsewhere, now);
  }
  // The promises of background work are booked beside G0, not inside it.
  if (!guaranteed || !IsBackground(queue->id())) gate_.Take(tokens, now);
  if (!guaranteed && IsPaced(*queue, *queue->requests.front())) {
    processor_pace_.Take(queue->requests.front()->bytes, now);
  }
  if (queue->ceiling) PayLimit(queue, *queue->requests.front(), now);
  Request* request = queue->requests.PopFront();
  queue->flows->Take(&request->in_flow);
  if (queue->transactions) queue->transactions->Left(*request);
  const bool own_time =
      request->account == Request::Account::kCharged && request->payer == request->queue;
  request->guaranteed = guaranteed || own_time;
  request->stage = Request::Stage::kWindow;
  ++queue->released;
  StampDeadline(queue, request, now);
  dispatch_->Add(request);
  Place(queue, now);
}

Request* Scheduler::Impl::Submit(Request* request, TimePoint now) {
  ClassQueue* queue = Find(request->queue);
  wait_meter_.Advance(queue, now);
  --queue->released;
  --queue->counters.queued_ops;
  queue->counters.queued_bytes -= request->bytes;
  --queued_;
  cost_model_.Submitted(*request, in_flight_);
  // Where the device is kept for reads, or others go in bursts, turns are made by that.
  const bool others_wait = dispatch_->bytes() > dispatch_->express_bytes() && !IsKept(now) &&
                           !bursts_.Acts(now) && !config_.anticipation;
  depth_control_.Submitted(request, others_wait);
  anticipation_.Submitted(queue->id(), request->arrival, request->elsewhere_tokens > 0);
  TakeTurn(request, now);
  request->in_hurry = InHurry(now) && !ReadsAreFar(kSmallRead);
  ++in_flight_;
  in_flight_bytes_ += request->bytes;
  queue->device_bytes += request->bytes;
  ++queue->device_ops;
  ++started_;
  NoteDemand(queue, now);
  request->dispatched = now;
  request->landed = false;
  request->stage = Request::Stage::kDevice;
  return request;
}

std::optional<TimePoint> Scheduler::Impl::WakeAt(TimePoint now) const {
  TimePoint at = held_.empty() ? TimePoint::Max() : held_.TopKey();
  if (guarantee_) at = std::min(at, guarantee_->WakeAt());
  if (blocked_tokens_ > 0) at = std::min(at, std::max(gate_.AdmitsAt(blocked_tokens_), next_step_));
  if (paced_) at = std::min(at, processor_pace_.AdmitsAt());
  if (blocked_beside_ > 0) at = std::min(at, gate_.AdmitsAt(blocked_beside_));
  if (IsKept(now)) at = std::min(at, KeptUntil());
  if (at == TimePoint::Max()) return std::nullopt;
  return at;
}

void Scheduler::Impl::Completed(Request* request, TimePoint now) {
  WEIR_CHECK(request->stage == Request::Stage::kDevice, "only what was pulled completes");
  request->stage = Request::Stage::kOutside;
  ClassQueue* queue = OwnerOf(*request);
  wait_meter_.Advance(queue, now);
  if (request->landed) {
    queue->landed_bytes -= request->bytes;
    landed_alone_ -= request->alone_estimate;
  } else {
    LeaveDevice(request, queue, now);
  }
  NoteGone(queue, now);
  EndTurn(*request, now);
  if (request->op == OpKind::kRead && IsLight(*request)) {
    anticipation_.Completed(queue->id(), started_ > queue->device_ops, now);
  }
  ClassCounters& counters = queue->counters;
  ++counters.served_ops;
  counters.served_bytes += request->bytes;
  (request->guaranteed ? counters.guaranteed_bytes : counters.surplus_bytes) += request->bytes;
  CountService(queue, request->bytes, 1);
  contract_meter_.Completed(queue, *request, request->guaranteed || !guarantee_, now);
  FlowOrder::Done(&request->in_flow);
  surplus_->Completed(queue, *request, request->device_time, now);
  queue->device_bytes -= request->bytes;
  --queue->device_ops;
  --started_;
  NoteDemand(queue, now);
  if (HeadIsStale(*queue)) Place(queue, now);
}

bool Scheduler::Impl::Cancel(Request* request, TimePoint now) {
  ClassQueue* queue = Find(request->queue);
  wait_meter_.Advance(queue, now);
  if (request->stage == Request::Stage::kQueued) {
    const bool was_head = queue->requests.front() == request;
    surplus_->Leaving(queue, request);
    queue->requests.Remove(request);
    queue->flows->Leave(&request->in_flow);
    if (queue->transactions) queue->transactions->Left(*request);
    if (was_head || queue->transactions || HeadIsStale(*queue)) Place(queue, now);
  } else if (request->stage == Request::Stage::kWindow) {
    dispatch_->Remove(request);
    --queue->released;
    FlowOrder::Done(&request->in_flow);
    surplus_->Completed(queue, *request, Duration::zero(), now);
  } else {
    return false;
  }
  NoteGone(queue, now);
  request->stage = Request::Stage::kOutside;
  contract_meter_.Cancelled(queue, *request, now);
  --queue->counters.queued_ops;
  queue->counters.queued_bytes -= request->bytes;
  --queued_;
  NoteDemand(queue, now);
  return true;
}

}  // namespace weir::osd::qos
