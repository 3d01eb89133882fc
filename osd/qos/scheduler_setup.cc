// What operators change on a running scheduler, and what timers do.
#include <algorithm>
#include <cmath>
#include <utility>

#include "osd/qos/control/promise_meter.h"
#include "osd/qos/dispatch/cscan.h"
#include "osd/qos/dispatch/cvc.h"
#include "osd/qos/dispatch/fifo.h"
#include "osd/qos/dispatch/virtual_clock.h"
#include "osd/qos/guarantee/htb.h"
#include "osd/qos/scheduler.h"
#include "osd/qos/surplus/cooperative.h"
#include "osd/qos/surplus/dsfq.h"
#include "osd/qos/surplus/fcfs.h"

namespace weir::osd::qos {

using Kind = Decision::Kind;

namespace {

constexpr Duration kSecond = std::chrono::seconds(1);
constexpr double kSmallestWeight = 1e-6;
// Of what a class with a limit got elsewhere. Shorter and the OSDs take turns, so that requests
// wait at one for what another could serve, which counts against the limit all the time; longer and
// those that begin together let more pass, 6 % in the first second with this.
constexpr Duration kLimitComesOffIn = std::chrono::milliseconds(60);

bool SameSurplus(const SchedulerConfig& a, const SchedulerConfig& b) {
  return a.surplus == b.surplus && a.cost == b.cost && a.quantum == b.quantum &&
         a.throughput_window == b.throughput_window && a.spare == b.spare;
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, TimePoint now, DecisionRecorder* recorder)
    : recorder_(recorder),
      config_(config),
      gate_(config.gate, config.token_rate, now),
      device_(config, now),
      dispatch_(MakeDispatch()),
      maximizer_(config.token_rate, now),
      contract_meter_(now),
      second_start_(now),
      next_second_(now + kSecond) {
  if (config.guarantee == GuaranteeKind::kHtb) guarantee_ = std::make_unique<Htb>();
  BuildBoxes(now);
  InstallClass({.id = kBestEffort, .name = "best-effort"}, now);
  Note({.kind = Kind::kStart, .now = now, .config = &config});
}

std::unique_ptr<Dispatch> Scheduler::MakeDispatch() const {
  switch (config_.dispatch) {
    case DispatchKind::kFifo:
      return std::make_unique<Fifo>();
    case DispatchKind::kCscan:
      return std::make_unique<Cscan>();
    case DispatchKind::kVc:
    case DispatchKind::kCvc:
      break;
  }
  CvcConfig config = config_.cvc;
  // Behind earlier stages only what is owed or light has a deadline, and that goes first
  // (RULES.md §7 rule 3) however late it is; the disk cannot collapse: C-SCAN orders the rest.
  if (!PassesAll()) config.late_mode = false;
  return std::make_unique<Cvc>(config, config_.dispatch == DispatchKind::kVc,
                               &device_.service_time());
}

// Makes the stages named by config_ and hands every class to them.
void Scheduler::BuildBoxes(TimePoint now) {
  for (auto& [id, queue] : classes_) {
    held_.Remove(queue.get());
    surplus_->Remove(queue.get());
    if (guarantee_) guarantee_->Withdraw(queue.get());
    queue->finish_tag = 0;
    queue->owed = 0;
  }
  dsfq_ = nullptr;
  if (config_.surplus == SurplusKind::kDsfq) {
    auto dsfq = std::make_unique<Dsfq>(config_, total_weight_);
    dsfq_ = dsfq.get();
    surplus_ = std::move(dsfq);
  } else if (config_.surplus == SurplusKind::kCooperative) {
    surplus_ = std::make_unique<Cooperative>(
        Cooperative::Options{.count_requests = config_.cost == CostKind::kRequests,
                             .quantum = config_.quantum,
                             .throughput_window = config_.throughput_window,
                             .spare = config_.spare});
  } else {
    surplus_ = std::make_unique<Fcfs>();
  }
  for (auto& [id, queue] : classes_) {
    for (Request* request = queue->requests.front(); request != nullptr; request = request->next) {
      request->cost = CostOf(*request);
      surplus_->Arrived(request);
    }
  }
  RetagAll(now);
}

void Scheduler::RetagAll(TimePoint now) {
  for (auto& [id, queue] : classes_) Place(queue.get(), now);
}

void Scheduler::Configure(const SchedulerConfig& config, TimePoint now) {
  Note({.kind = Kind::kConfigure, .now = now, .config = &config});
  const SchedulerConfig old = config_;
  config_ = config;
  device_.Configure(config);
  contract_meter_.Restart(now);
  for (auto& [id, queue] : classes_) queue->contract.requests = queue->contract.seconds = 0;

  gate_.SetKind(config.gate, now);
  if (config.token_rate != old.token_rate || !MaximizerActs() || !old.maximizer) {
    maximizer_ = BandwidthMaximizer(config.token_rate, now);
    gate_.SetRate(config.token_rate, now);
  }
  if (config.dispatch != old.dispatch || !(config.cvc == old.cvc) ||
      config.surplus != old.surplus) {
    auto dispatch = MakeDispatch();
    while (!dispatch_->entered().empty()) {
      Request* request = dispatch_->entered().front();
      dispatch_->Remove(request);
      dispatch->Add(request);
    }
    dispatch_ = std::move(dispatch);
  }
  if (config.guarantee == GuaranteeKind::kNone && guarantee_) {
    for (auto& [id, queue] : classes_) guarantee_->Remove(queue.get());
    guarantee_.reset();
  }
  if (config.guarantee == GuaranteeKind::kHtb && !guarantee_) guarantee_ = std::make_unique<Htb>();
  for (auto& [id, queue] : classes_) SetPromise(queue.get(), now);

  if (SameSurplus(config, old)) {
    RetagAll(now);
  } else {
    BuildBoxes(now);
  }
}

void Scheduler::SetClass(const ClassSpec& spec, TimePoint now) {
  Note({.kind = Kind::kSetClass, .now = now, .spec = &spec});
  InstallClass(spec, now);
}

void Scheduler::InstallClass(ClassSpec spec, TimePoint now) {
  if (!std::isfinite(spec.weight) || spec.weight < kSmallestWeight) spec.weight = kSmallestWeight;
  std::unique_ptr<ClassQueue>& slot = classes_[spec.id];
  if (!slot) {
    slot = std::make_unique<ClassQueue>();
    slot->counters.id = spec.id;
    slot->idle_since = now;
    slot->wait.since = now;
    slot->first_sequence = next_sequence_;
    if (spec.id == kBestEffort) best_effort_ = slot.get();
    SetNumbered(spec.id, slot.get());
  } else {
    total_weight_ -= slot->spec.weight;
  }
  ClassQueue* queue = slot.get();
  const bool was_disk = queue->is_disk();
  total_weight_ += spec.weight;
  queue->spec = std::move(spec);
  SetPromise(queue, now);
  SetCeiling(queue, now);
  Place(queue, now);
  if (was_disk != queue->is_disk()) CountDisks(now);
}

void Scheduler::SetNumbered(ClassId id, ClassQueue* queue) {
  if (id.value >= kNumbered) return;
  if (id.value >= numbered_.size()) numbered_.resize(id.value + 1);
  numbered_[id.value] = queue;
}

void Scheduler::SetPromise(ClassQueue* queue, TimePoint now) {
  const ClassSpec& spec = queue->spec;
  const bool ended = spec.reservation_ends.has_value() && now >= *spec.reservation_ends;
  const bool reserved = spec.reservation.has_value() && !ended;
  queue->promised = reserved ? spec.reservation->bytes_per_s : 0;
  queue->promised_iops = reserved ? spec.reservation->iops : 0;
  SetTransactions(queue, reserved, now);
  queue->promise_total = reserved && spec.reservation->scope == ReservationScope::kCluster;
  queue->limit_total = !(reserved && spec.reservation->scope == ReservationScope::kOsd);
  if (spec.id == kBestEffort && config_.EffectiveBestEffortMin() > queue->promised) {
    queue->promised = config_.EffectiveBestEffortMin();
    queue->promise_total = false;
  }
  if (reserved && spec.reservation_ends) {
    next_expiry_ = std::min(next_expiry_, *spec.reservation_ends);
  }
  SetTimeShare(queue);
  // A bound, or requests per second, are a rate that is promised like others (RULES.md §3.8, C9).
  const double contract_rate = FinishRate(spec.service, IopsMax());
  queue->bound_iops = static_cast<uint64_t>(std::ceil(std::min(contract_rate, 1e9)));
  queue->finish_rate = std::max(contract_rate, static_cast<double>(queue->promised_iops));
  const double unit = config_.RequestUnit();
  queue->unit_tokens =
      config_.token_rate > 0 ? std::max<int64_t>(1, std::llround(unit / kTokenBytes)) : 0;
  contract_meter_.Changed(queue, IopsMax(), unit);
  NoteDemand(queue, now);
  if (guarantee_) guarantee_->PromiseChanged(queue, now);
  ResizeRoot(now);
}

// Without a guarantee stage a virtual disk is a rate in bytes that finish times are spaced by
// (dispatch `vc` and `cvc`).
void Scheduler::PromiseDisk(ClassQueue* queue) const {
  const VirtualDisk& disk = queue->spec.disk;
  if (!queue->is_disk()) return;
  auto rate = static_cast<uint64_t>(disk.peak * static_cast<double>(config_.token_rate));
  if (disk.type == ClassType::kThroughput) rate = std::min(rate, disk.throughput_bytes_per_s);
  if (rate <= queue->promised) return;
  queue->promised = rate;
  queue->promise_total = false;
}

// The ledger is the device's time (common/qos/booking.h): a virtual disk has its share of it, and
// where there is one, a promise in bytes no more than was booked for it.
void Scheduler::SetTimeShare(ClassQueue* queue) const {
  queue->time_share = 0;
  if (config_.surplus == SurplusKind::kCooperative) return;  // which keeps clocks of its own
  if (!guarantee_) return PromiseDisk(queue);
  if (queue->is_disk()) {
    queue->time_share = queue->spec.disk.peak;
  } else if (virtual_disks_ > 0 && config_.token_rate > 0 && !IsBackground(queue->id())) {
    const double booked =
        std::max(static_cast<double>(queue->promised),
                 static_cast<double>(queue->promised_iops) * config_.RequestUnit());
    queue->time_share = booked / static_cast<double>(config_.token_rate);
  }
}

// Whether anybody rents time matters to everybody's promise.
void Scheduler::CountDisks(TimePoint now) {
  const size_t before = std::exchange(virtual_disks_, 0);
  for (const auto& [id, queue] : classes_) {
    if (queue->is_disk()) ++virtual_disks_;
  }
  if (!guarantee_ || (before > 0) == (virtual_disks_ > 0)) return;
  for (const auto& [id, queue] : classes_) {
    const double share = queue->time_share;
    SetTimeShare(queue.get());
    if (queue->time_share == share) continue;
    SetPromise(queue.get(), now);
    Place(queue.get(), now);
  }
}

double Scheduler::IopsMax() const {
  return config_.cvc.iops_max > 0 ? config_.cvc.iops_max : config_.EffectiveIopsMax();
}

ServiceReport Scheduler::Measures() const {
  ServiceReport report = contract_meter_.Report();
  for (const auto& [id, queue] : classes_) {
    if (ContractMeter::IsMeasured(*queue)) report.measured.push_back(id);
  }
  std::sort(report.measured.begin(), report.measured.end());
  return report;
}

void Scheduler::SetTransactions(ClassQueue* queue, bool reserved, TimePoint now) {
  if (!reserved || queue->spec.transactions.empty()) {
    queue->transactions.reset();
    return;
  }
  if (!queue->transactions) queue->transactions = std::make_unique<Transactions>();
  queue->transactions->Configure(queue->spec.transactions, now);
  for (Request* request = queue->requests.front(); request != nullptr; request = request->next) {
    queue->transactions->Arrived(request, now);
  }
}

void Scheduler::SetCeiling(ClassQueue* queue, TimePoint now) {
  if (!queue->spec.limit_bytes_per_s) {
    queue->ceiling.reset();
    return;
  }
  const uint64_t rate = *queue->spec.limit_bytes_per_s;
  const int64_t cap = LimitCap(rate, queue->largest_tokens);
  if (!queue->ceiling) queue->ceiling = std::make_unique<TokenBucket>(rate, cap, now);
  queue->ceiling->SetRate(rate, cap, now);
  // All of it: a class that comes back from other OSDs was held to its limit there all the time.
  queue->ceiling->KeepSpill(queue->limit_total ? INT64_MAX : 0);
  queue->ceiling->SetComesOffIn(kLimitComesOffIn);
}

void Scheduler::ResizeRoot(TimePoint now) {
  gate_.SetSizes(largest_tokens_, guarantee_ ? guarantee_->LeafCaps() : 0, now);
}

void Scheduler::RemoveClass(ClassId id, TimePoint now) {
  Note({.kind = Kind::kRemoveClass, .now = now, .class_id = id});
  const auto found = classes_.find(id);
  if (id == kBestEffort || found == classes_.end()) return;
  const std::unique_ptr<ClassQueue> queue = std::move(found->second);
  classes_.erase(found);
  SetNumbered(id, nullptr);
  held_.Remove(queue.get());
  surplus_->Remove(queue.get());
  surplus_->Remove(best_effort_);  // its queue is about to change in the middle
  if (guarantee_) guarantee_->Remove(queue.get());
  total_weight_ -= queue->spec.weight;
  wait_meter_.Advance(best_effort_, now);

  for (Request* request = dispatch_->entered().front(); request != nullptr;
       request = request->next) {
    if (request->queue != id) continue;
    request->queue = kBestEffort;
    request->charge = 0;
  }
  std::vector<Request*> waiting;
  for (ClassQueue* from : {queue.get(), best_effort_}) {
    while (!from->requests.empty()) {
      Request* const request = waiting.emplace_back(from->requests.PopFront());
      request->queue = kBestEffort;
      from->flows->Leave(&request->in_flow);
    }
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const Request* a, const Request* b) { return a->sequence < b->sequence; });
  for (Request* request : waiting) {
    best_effort_->requests.PushBack(request);
    JoinFlow(best_effort_, request);
  }
  std::erase_if(removed_flows_, [](const auto& flows) { return flows->idle(); });
  removed_flows_.push_back(std::move(queue->flows));
  best_effort_->released += queue->released;
  best_effort_->under_way += queue->under_way;
  best_effort_->device_bytes += queue->device_bytes;
  best_effort_->device_ops += queue->device_ops;
  best_effort_->landed_bytes += queue->landed_bytes;
  best_effort_->landed_ops += queue->landed_ops;
  NoteDemand(best_effort_, now);
  best_effort_->counters.queued_ops += queue->counters.queued_ops;
  best_effort_->counters.queued_bytes += queue->counters.queued_bytes;
  NoteSize(best_effort_, std::max(best_effort_->largest_tokens, queue->largest_tokens), now);
  Place(best_effort_, now);
  CountDisks(now);
}

void Scheduler::Expire(TimePoint now) {
  next_expiry_ = TimePoint::Max();
  for (auto& [id, queue] : classes_) {
    if (!queue->spec.reservation_ends) continue;
    SetPromise(queue.get(), now);
    Place(queue.get(), now);
  }
}

bool Scheduler::MaximizerActs() const {
  return config_.maximizer && gate_.limits();
}

void Scheduler::Tick(TimePoint now) {
  Note({.kind = Kind::kTick, .now = now});
  if (now >= next_expiry_) Expire(now);
  if (now < next_second_) return;
  CloseSecond(now);
  if (now - maximizer_.period_start() >= BandwidthMaximizer::kPeriod) StepMaximizer(now);
  if (dsfq_ != nullptr && dsfq_->WantsRebase()) RebaseTags(now);
}

void Scheduler::CloseSecond(TimePoint now) {
  // Without a box that knows time a virtual disk is a promise in bytes.
  const bool by_time = guarantee_ || config_.surplus == SurplusKind::kCooperative;
  const double worked = std::exchange(worked_, 0);
  for (auto& [id, queue] : classes_) {
    const bool waited = !queue->requests.empty() && HadDemandSince(*queue, second_start_);
    const bool late = contract_meter_.CloseSecond(queue.get(), waited);
    if (!qos::CloseSecond(queue.get(), by_time ? worked : 0, second_start_, now) && !late) continue;
    const int64_t seconds = (now - second_start_) / kSecond;
    queue->counters.violation_seconds += static_cast<uint64_t>(std::max<int64_t>(seconds, 1));
  }
  device_.estimate().CloseSecond({config_.token_rate, booked_}, now);
  second_start_ = now;
  next_second_ = now + kSecond;
}

void Scheduler::StepMaximizer(TimePoint now) {
  bool violated = false;
  const TimePoint start = maximizer_.period_start();
  for (auto& [id, queue] : classes_) violated |= ClosePeriod(queue.get(), start, now);
  if (!MaximizerActs()) {
    maximizer_ = BandwidthMaximizer(config_.token_rate, now);
    return;
  }
  gate_.SetRate(maximizer_.Step(violated, now), now);
}

void Scheduler::RebaseTags(TimePoint now) {
  const double by = dsfq_->RestartVirtualTime();
  for (auto& [id, queue] : classes_) Dsfq::Shift(queue.get(), by);
  RetagAll(now);
}

void Scheduler::SetBooked(uint64_t bytes_per_s) {
  Note({.kind = Kind::kSetBooked, .now = {}, .amount = bytes_per_s});
  booked_ = bytes_per_s;
}

void Scheduler::SetBulkCap(uint64_t bytes_per_s, TimePoint now) {
  Note({.kind = Kind::kSetBulkCap, .now = now, .amount = bytes_per_s});
  bulk_cap_.SetRate(bytes_per_s, now);
}

void Scheduler::DoneOutside(uint64_t bytes) {
  Note({.kind = Kind::kDoneOutside, .now = {}, .amount = bytes});
  device_.estimate().Done(device_.WorthOf(bytes));
}

Advice Scheduler::Advise(TimePoint now) const {
  return {.piece_bytes = device_.PieceBytes(now),
          .has_slot = device_.HasSlot(now),
          // Where time is rented, a flush is the time of whoever asks for it.
          .landing_frees = !device_.rented() && (blocked_.by_rate() || device_.LandingFrees(now))};
}

SchedulerState Scheduler::State(TimePoint now) const {
  return {.token_rate = gate_.rate(),
          .bulk_cap = CapHolds(now) ? bulk_cap_.rate() : 0,
          .bulk_taken = bulk_cap_.taken(),
          .disk = device_.estimate().Now()};
}

std::vector<ClassCounters> Scheduler::Counters(TimePoint now) {
  Note({.kind = Kind::kCounters, .now = now});
  std::vector<ClassCounters> counters;
  counters.reserve(classes_.size());
  for (const auto& [id, queue] : classes_) {
    wait_meter_.Advance(queue.get(), now);
    counters.push_back(queue->counters);
    counters.back().times = queue->wait.sums;
  }
  std::sort(counters.begin(), counters.end(),
            [](const ClassCounters& a, const ClassCounters& b) { return a.id < b.id; });
  return counters;
}

}  // namespace weir::osd::qos
