#include "osd/qos/scheduler.h"

#include <algorithm>

#include "common/base/check.h"
#include "osd/qos/control/promise_meter.h"
#include "osd/qos/dispatch/virtual_clock.h"
#include "osd/qos/surplus/dsfq.h"

namespace weir::osd::qos {

using Kind = Decision::Kind;

namespace {

// Delays come over the network; beyond this they mean the same and only invite overflow.
constexpr int64_t kElsewhereMax = int64_t{1} << 40;

// How long a class counts as one that has just come back.
constexpr Duration kReturning = std::chrono::milliseconds(100);

// Another flow's turn has come than the head's.
bool HeadIsStale(const ClassQueue& queue) {
  return !queue.requests.empty() && queue.flows->First() != &queue.requests.front()->in_flow;
}

// What went elsewhere is paid when the request goes, not when it comes: what waits here when a
// class moves to other OSDs then still goes at the pace of all of it.
void PayLimit(ClassQueue* queue, const Request& request, TimePoint now) {
  TokenBucket& ceiling = *queue->ceiling;
  ceiling.Refill(now);
  ceiling.Take(TokensOf(request.bytes));
  if (!queue->limit_total) return;
  ceiling.TakeElsewhere(-2 * BucketCap(ceiling.rate(), queue->largest_tokens),
                        request.elsewhere_tokens);
}

// Under cost `device-time` what was sent elsewhere is priced like the request that says so (C7).
void PriceElsewhere(Request* request) {
  const double price =
      static_cast<double>(request->cost) / static_cast<double>(TokensOf(request->bytes));
  request->elsewhere = static_cast<int64_t>(static_cast<double>(request->elsewhere) * price);
}

// Neither light nor of a class with a latency bound: what the bulk cap holds back.
bool IsBulk(const ClassQueue& queue, const Request& request) {
  return queue.spec.service.bound == Duration(0) && !IsLight(request);
}

}  // namespace

ClassQueue* Scheduler::Find(ClassId id) const {
  if (id.value < kNumbered) [[likely]] {
    ClassQueue* queue = id.value < numbered_.size() ? numbered_[id.value] : nullptr;
    return queue == nullptr ? best_effort_ : queue;
  }
  const auto found = classes_.find(id);
  return found == classes_.end() ? best_effort_ : found->second.get();
}

ClassQueue* Scheduler::OwnerOf(const Request& request) {
  ClassQueue* queue = Find(request.queue);
  return request.sequence < queue->first_sequence ? best_effort_ : queue;
}

int64_t Scheduler::CostOf(const Request& request) const {
  if (config_.cost == CostKind::kRequests) return 1;
  if (config_.cost == CostKind::kBytes || dsfq_ == nullptr) return TokensOf(request.bytes);
  // Microseconds of the device, as the model has them.
  return std::max<int64_t>(1, device_.cost().Busy(request.op, request.bytes).count() / 1000);
}

void Scheduler::Enqueue(Request* request, TimePoint now) {
  WEIR_CHECK(request->stage == Request::Stage::kOutside, "a request is enqueued once");
  Note({.kind = Kind::kEnqueue, .now = now, .request = request});
  ClassQueue* queue = Find(request->class_id);
  wait_meter_.Advance(queue, now);
  request->queue = queue->id();
  request->stage = Request::Stage::kQueued;
  request->arrival = now;
  WaitMeter::Arrived(*queue, request);
  request->sequence = next_sequence_++;
  request->cost = CostOf(*request);
  request->account = Request::Account::kNone;
  request->charge = 0;
  request->elsewhere = std::clamp<int64_t>(request->elsewhere, 0, kElsewhereMax);
  surplus_->Arrived(request);

  const bool returns = ReturnsFromIdle(queue, now);
  ++queued_;
  ++queue->under_way;
  if (queue->rents_time()) device_.Rented(now);
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
  device_.Asked(*queue, *request, now);
  if (is_largest) NoteSize(queue, tokens, now);
  if (is_head && queue->ceiling && queue->released + queue->device_ops == 0) {
    queue->ceiling->Refill(now);
    queue->ceiling->CutAt(queue->largest_tokens);
  }
  request->elsewhere_tokens = 0;
  if (request->elsewhere > 0) CountElsewhere(queue, request);
  if (config_.cost == CostKind::kDeviceTime && dsfq_ != nullptr) PriceElsewhere(request);
  if (returns) dsfq_->ForgiveIdle(*queue, request);
  // Buckets that grew or were drained move the head even when it is not new.
  const bool leads = queue->flows->First() == &request->in_flow;
  const bool may_lead = leads || is_largest || request->elsewhere > 0 || queue->transactions;
  if (may_lead) Place(queue, now);
}

void Scheduler::JoinFlow(ClassQueue* queue, Request* request) {
  // Boxes that decide by deadlines of single requests have an order of their own.
  const bool has_flows =
      config_.surplus == SurplusKind::kDsfq || config_.surplus == SurplusKind::kFcfs;
  queue->flows->Add(&request->in_flow, has_flows ? request->flow : FlowKey{}, request->bytes,
                    device_.cost().Busy(request->op, request->bytes));
}

// The request that tells of the time before may be overtaken on its way by a later one, so a class
// returns for a moment.
bool Scheduler::ReturnsFromIdle(ClassQueue* queue, TimePoint now) const {
  if (dsfq_ == nullptr || config_.reset_idle <= Duration(0)) return false;
  if (queue->under_way == 0 && now - queue->idle_since >= config_.reset_idle) {
    queue->returned_at = now;
  }
  return queue->returned_at && now - *queue->returned_at < kReturning;
}

void Scheduler::NoteGone(ClassQueue* queue, TimePoint now) {
  if (--queue->under_way == 0) queue->idle_since = now;
}

void Scheduler::NoteSize(ClassQueue* queue, int64_t tokens, TimePoint now) {
  queue->largest_tokens = tokens;
  if (guarantee_) guarantee_->PromiseChanged(queue, now);
  SetCeiling(queue, now);
  largest_tokens_ = std::max(largest_tokens_, tokens);
  ResizeRoot(now);
}

void Scheduler::CountElsewhere(ClassQueue* queue, Request* request) {
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

void Scheduler::Withdraw(ClassQueue* queue) {
  if (guarantee_) guarantee_->Withdraw(queue);
  surplus_->Withdraw(queue);
}

void Scheduler::Place(ClassQueue* queue, TimePoint now) {
  wait_meter_.Advance(queue, now);
  PlaceHead(queue, now);
  WaitMeter::Placed(queue, held_.Contains(*queue));
}

void Scheduler::PlaceHead(ClassQueue* queue, TimePoint now) {
  if (queue->requests.empty()) {
    held_.Remove(queue);
    Withdraw(queue);
    return;
  }
  if (HeadIsStale(*queue)) queue->requests.MoveToFront(Request::Of(queue->flows->First()));
  if (queue->ceiling) {
    const Request& head = *queue->requests.front();
    const TimePoint due = queue->ceiling->CoversAt(TokensOf(head.bytes), now);
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

PullResult Scheduler::Pull(TimePoint now) {
  if (now >= next_expiry_) Expire(now);
  surplus_->SetTime(now);
  device_.Prepare(now);
  const bool has_slot = device_.HasSlot(now);
  FillWindow(has_slot, now);
  wait_meter_.SetBlocked(blocked_.by);
  PullResult result;
  Request* next = NextForDevice(has_slot, now);
  if (next != nullptr) {
    result.request = Submit(next, now);
    result.patience = device_.Patience(*next, queued_ > 0);
  } else if (has_slot) {
    result.wake_at = WakeAt(now);
  }
  const bool capped = has_slot && next == nullptr && blocked_.by == Blocked::By::kRoot;
  maximizer_.Observe(capped, now);
  device_.estimate().Observe(DiskLoad(has_slot, now), now);
  Note({.kind = Kind::kPull, .now = now, .request = next});
  return result;
}

void Scheduler::FillWindow(bool has_slot, TimePoint now) {
  const size_t limit =
      PassesAll() ? SIZE_MAX
                  : std::max<size_t>(dispatch_->Capacity(device_.window_depth()), has_slot ? 1 : 0);
  blocked_ = {};
  light_blocked_until_ = TimePoint::Max();
  while (ReleaseOne(dispatch_->size() < limit, now)) {
  }
}

// Without room in the window only what will leave it first, where deadlines decide who does: the
// owed, and what is light.
bool Scheduler::ReleaseOne(bool has_room, TimePoint now) {
  if (!has_room && !device_.adapts()) return false;
  while (!held_.empty() && held_.TopKey() <= now) Place(held_.Top(), now);
  if (guarantee_) {
    if (ClassQueue* owed = guarantee_->Pick(now); owed != nullptr) {
      BringForward(owed, now);
      Release(owed, Grant::kOwed, now);
      return true;
    }
  }
  ClassQueue* next = surplus_->Pick();
  if (next == nullptr) return false;
  blocked_ = BlockOf(*next, has_room, now);
  if (blocked_.by != Blocked::By::kNothing) return device_.adapts() && ReleaseLight(now);
  Release(next, Grant::kSurplus, now);
  return true;
}

bool Scheduler::ReleaseLight(TimePoint now) {
  const bool free = blocked_.by == Blocked::By::kBulkCap;
  ClassQueue* const light = surplus_->PickLight(free);
  if (light == nullptr) return false;
  const TimePoint passes =
      gate_.PassesAt(TokensOf(light->requests.front()->bytes), /*in_steps=*/false, now);
  if (passes > now) {
    light_blocked_until_ = passes;
    return false;
  }
  Release(light, free ? Grant::kFree : Grant::kSurplus, now);
  return true;
}

Blocked Scheduler::BlockOf(const ClassQueue& queue, bool has_room, TimePoint now) {
  const bool full =
      !has_room || device_.IsKept(now) || (dispatch_->bytes() >= kWindowBytes && !PassesAll());
  const Request& head = *queue.requests.front();
  const bool light = IsLight(head);
  const bool passes = device_.adapts() && !device_.rented() && light;
  if (full && !(passes && dispatch_->light_bytes() < kLightBytes)) {
    return {.by = Blocked::By::kRoom};
  }
  const bool in_steps = device_.IsShort(now) && !light;
  const TimePoint root = gate_.PassesAt(TokensOf(head.bytes), in_steps, now);
  const bool capped = IsBulk(queue, head) && CapHolds(now);
  const TimePoint cap = capped ? bulk_cap_.PassesAt(now) : now;
  if (std::max(root, cap) <= now) return {};
  return cap > root ? Blocked{.by = Blocked::By::kBulkCap, .until = cap}
                    : Blocked{.by = Blocked::By::kRoot, .until = root};
}

// The request that the class is owed for is its oldest, or the head of one of its transactions.
void Scheduler::BringForward(ClassQueue* queue, TimePoint now) {
  if (!queue->transactions) return;
  Request* owed = queue->transactions->Next(now).owed;
  if (owed == nullptr || owed == queue->requests.front()) return;
  queue->requests.MoveToFront(owed);
  surplus_->Offer(queue);
}

void Scheduler::Release(ClassQueue* queue, Grant grant, TimePoint now) {
  const bool guaranteed = grant == Grant::kOwed;
  Request* const request = queue->requests.front();
  wait_meter_.Advance(queue, now);
  wait_meter_.Released(queue, request, now);
  int64_t tokens = TokensOf(request->bytes);
  surplus_->Released(queue, grant != Grant::kSurplus);
  if (guaranteed) guarantee_->Take(queue, tokens, now);
  if (guarantee_ && queue->promise_total) {
    guarantee_->ServedElsewhere(queue, request->elsewhere_tokens, now);
  }
  // Paid by a virtual disk's leaf in time: of the root that is as much as was booked for so much
  // time, or a sequential disk would take the whole of G0 with its share.
  if (guaranteed && queue->rents_time() && request->charge > 0) {
    const double bytes = request->charge * static_cast<double>(gate_.rate());
    tokens = static_cast<int64_t>(bytes / kTokenBytes);
  }
  // The promises of background work are booked beside G0, not inside it.
  if (!guaranteed || !IsBackground(queue->id())) gate_.Take(tokens, now);
  if (!guaranteed && IsBulk(*queue, *request)) {
    bulk_cap_.Take(request->bytes, CapHolds(now), now);
  }
  if (queue->ceiling) PayLimit(queue, *request, now);
  queue->requests.Remove(request);
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

Request* Scheduler::Submit(Request* request, TimePoint now) {
  ClassQueue* queue = Find(request->queue);
  wait_meter_.Advance(queue, now);
  --queue->released;
  --queue->counters.queued_ops;
  queue->counters.queued_bytes -= request->bytes;
  --queued_;
  device_.Started(queue, request, dispatch_->bytes() > dispatch_->light_bytes(), now);
  NoteDemand(queue, now);
  request->stage = Request::Stage::kDevice;
  return request;
}

std::optional<TimePoint> Scheduler::WakeAt(TimePoint now) const {
  TimePoint at = held_.empty() ? TimePoint::Max() : held_.TopKey();
  if (guarantee_) at = std::min(at, guarantee_->WakeAt());
  at = std::min({at, blocked_.until, light_blocked_until_});
  if (device_.IsKept(now)) at = std::min(at, device_.KeptUntil());
  if (at == TimePoint::Max()) return std::nullopt;
  return at;
}

void Scheduler::NoteSpan(const ClassQueue& queue, const Request& request, TimePoint now) {
  if (!guarantee_ || !device_.adapts() || request.landed) return;
  device_.KeepWithin(queue, guarantee_->SpanOf(queue, request, now), now);
}

std::optional<Duration> Scheduler::Landed(Request* request, TimePoint now) {
  WEIR_CHECK(request->stage == Request::Stage::kDevice && !request->landed, "lands once");
  Note({.kind = Kind::kLanded, .now = now, .request = request});
  ClassQueue* queue = OwnerOf(*request);
  wait_meter_.Advance(queue, now);
  NoteSpan(*queue, *request, now);
  device_.Landed(queue, request, now);
  return device_.Patience(*request, queued_ > 0);
}

void Scheduler::Completed(Request* request, TimePoint now) {
  WEIR_CHECK(request->stage == Request::Stage::kDevice, "only what was pulled completes");
  Note({.kind = Kind::kCompleted, .now = now, .request = request});
  request->stage = Request::Stage::kOutside;
  ClassQueue* queue = OwnerOf(*request);
  wait_meter_.Advance(queue, now);
  NoteSpan(*queue, *request, now);
  device_.Completed(queue, request, now);
  NoteGone(queue, now);
  ClassCounters& counters = queue->counters;
  ++counters.served_ops;
  counters.served_bytes += request->bytes;
  (request->guaranteed ? counters.guaranteed_bytes : counters.surplus_bytes) += request->bytes;
  CountService(queue, request->bytes, 1);
  worked_ += ToSeconds(request->device_time);
  if (virtual_disks_ > 0) queue->second_time += ToSeconds(request->device_time);
  contract_meter_.Completed(queue, *request, request->guaranteed || !guarantee_, now);
  FlowOrder::Done(&request->in_flow);
  surplus_->Completed(queue, *request, request->device_time, now);
  if (guarantee_) guarantee_->Completed(queue, *request, request->device_time, now);
  NoteDemand(queue, now);
  // What a transaction's user has under way decides what he is owed for.
  const bool waits = queue->transactions && !queue->requests.empty();
  if (waits || HeadIsStale(*queue)) Place(queue, now);
}

bool Scheduler::Cancel(Request* request, TimePoint now) {
  Note({.kind = Kind::kCancel, .now = now, .request = request});
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
    if (guarantee_) guarantee_->Completed(queue, *request, Duration::zero(), now);
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

void Scheduler::StampDeadline(ClassQueue* queue, Request* request, TimePoint now) {
  // Deadlines protect what is promised: behind a guarantee stage that is what it released, not what
  // the class gets as surplus. Class 0 has none (rule 6).
  const bool promised = PassesAll() || request->guaranteed;
  if (promised && queue->id() != kBestEffort) {
    StampFinishTime(queue, request, config_.cvc.ahead_max, now);
  } else {
    request->finish_time = TimePoint::Max();
  }
  const VirtualDisk& disk = queue->spec.disk;
  if (promised && disk.type == ClassType::kLatency && queue->rents_time()) {
    request->finish_time = std::min(request->finish_time, request->arrival + disk.latency);
  }
  // Who is light waits for each answer before it asks again: its turn has come, so now.
  if (device_.adapts() && IsLight(*request)) {
    request->finish_time = std::min(request->finish_time, now);
  }
}

Request* Scheduler::NextForDevice(bool has_slot, TimePoint now) {
  if (dispatch_->size() == 0) return nullptr;
  const bool overtaken = device_.Overtaken();
  if (has_slot && !device_.IsKept(now)) {
    return dispatch_->Next({now, device_.in_flight(), overtaken || device_.Probes()});
  }
  if (!device_.adapts()) return nullptr;
  Request* urgent = dispatch_->Urgent();
  if (urgent == nullptr || (overtaken && !urgent->guaranteed) ||
      !(has_slot || device_.HasSlotBeyond(*urgent))) {
    return nullptr;
  }
  dispatch_->Remove(urgent);
  return urgent;
}

// Without a slot, and with somebody who waits for nothing else.
DiskEstimate::State Scheduler::DiskLoad(bool has_slot, TimePoint now) const {
  const bool wait = dispatch_->size() > 0 || (queued_ > 0 && held_.empty());
  if (has_slot || !wait || blocked_.by_rate()) return DiskEstimate::State::kIdle;
  return device_.MayStarve(now) ? DiskEstimate::State::kShort : DiskEstimate::State::kLimits;
}

}  // namespace weir::osd::qos
