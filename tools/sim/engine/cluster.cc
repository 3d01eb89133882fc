#include "tools/sim/engine/cluster.h"

#include <algorithm>

#include "tools/sim/devices/simple.h"

namespace weir::sim {
namespace {

constexpr uint64_t kLoadSeeds = 1ull << 32;  // keeps the seeds of loads and devices apart
constexpr uint64_t kNet = 4;                 // what an OSD lets pass, in limits that are divided

OsdId OsdOf(const Job& job) {
  return OsdId(static_cast<uint32_t>(job.io.osd));
}

}  // namespace

Cluster::Cluster(uint64_t seed) : seed_(seed) {}

Cluster::Cluster(size_t osds, const SchedulerConfig& config, uint64_t device_rate) : Cluster(0) {
  for (size_t i = 0; i < osds; ++i) AddOsd(config, Flat(static_cast<double>(device_rate)));
}

Cluster::~Cluster() = default;

SimOsd& Cluster::AddOsd(const SchedulerConfig& config, const DeviceFactory& device,
                        osd::qos::DecisionRecorder* recorder) {
  cost_ = config.cost;
  return AddOsd(ProductPolicy(config, recorder), device);
}

SimOsd& Cluster::AddOsd(const PolicyFactory& policy, const DeviceFactory& device) {
  const Prng prng(MixHash(seed_, osds_.size()));
  osds_.push_back(std::make_unique<SimOsd>(&events_, policy(events_.now()), device(&events_, prng),
                                           [this](Job* job) { Done(job); }));
  return *osds_.back();
}

void Cluster::Done(Job* job) {
  if (hook_) hook_->OnDone(*job);
  Limit* const limit = LimitOf(*job);
  if (limit == nullptr) return job->load->OnDone(job);
  const TimePoint now = events_.now();
  job->arrived = now;
  limit->window.Took(OsdOf(*job), now - job->left - job->request.held_by_limit, now);
  limit->places[job->io.osd].flying_bytes -= job->io.bytes;
  limit->answers.push_back(job);
  SendAdmitted(limit);
}

void Cluster::SetClass(const ClassSpec& spec) {
  const bool per_osd = spec.reservation && spec.reservation->scope == ReservationScope::kOsd;
  const bool alone = division_ != nullptr && osds_.size() < 2;  // its OSD holds it
  ClassSpec at_osds = spec;
  if (hold_limits_ && spec.limit_bytes_per_s && !per_osd && !alone) {
    limits_[spec.id] = *spec.limit_bytes_per_s;
    if (division_ != nullptr) {
      division_->SetLimits(limits_);
      at_osds.limit_bytes_per_s = *spec.limit_bytes_per_s * kNet;
    }
  }
  for (auto& osd : osds_) {
    osd->policy().SetClass(at_osds, events_.now());
    osd->Pump();
  }
}

void Cluster::DivideLimits() {
  hold_limits_ = true;
  division_ = std::make_unique<LimitDivision>(
      &events_, LimitDivision::Hooks{[this](size_t coordinator) { return CountsOf(coordinator); },
                                     [this](size_t coordinator) { ObeyParts(coordinator); }});
}

uint64_t Cluster::RateOf(size_t coordinator, ClassId id, uint64_t limit) const {
  return division_ == nullptr ? limit : BytesOf(division_->PartOf(coordinator, id), limit);
}

std::map<ClassId, LimitShare::Counts> Cluster::CountsOf(size_t coordinator) {
  std::map<ClassId, LimitShare::Counts> counts;
  for (const auto& [id, bytes_per_s] : limits_) {
    LimitShare::Counts& of = counts[id];
    const auto window = windows_.find({coordinator, id});
    if (window == windows_.end()) continue;
    const Limit& limit = window->second;
    of.served_bytes = limit.window.served_bytes();
    of.queued_bytes = limit.held_bytes;
    of.limited = limit.held_for;
    if (limit.holds) of.limited += events_.now() - limit.holds_since;
  }
  return counts;
}

void Cluster::ObeyParts(size_t coordinator) {
  for (const auto& [id, bytes_per_s] : limits_) {
    const auto window = windows_.find({coordinator, id});
    if (window == windows_.end()) continue;
    window->second.window.SetRate(RateOf(coordinator, id, bytes_per_s), events_.now());
    SendAdmitted(&window->second);
  }
}

void Cluster::Configure(const SchedulerConfig& config) {
  cost_ = config.cost;
  for (auto& osd : osds_) {
    osd->scheduler().Configure(config, events_.now());
    osd->Pump();
  }
}

Load* Cluster::Start(LoadOptions options) {
  const Prng prng(MixHash(seed_, kLoadSeeds + loads_.size()));
  loads_.push_back(std::make_unique<Load>(this, std::move(options), prng));
  loads_.back()->Begin();
  return loads_.back().get();
}

client::DelayTracker& Cluster::tracker(size_t coordinator) {
  if (coordinator >= trackers_.size()) trackers_.resize(coordinator + 1);
  return trackers_[coordinator];
}

int64_t Cluster::CostOf(const Job& job) const {
  return cost_ == CostKind::kRequests ? 1 : TokensOf(job.io.bytes);
}

Cluster::Limit* Cluster::LimitOf(const Job& job) {
  const auto limit = limits_.find(job.request.class_id);
  if (limit == limits_.end()) return nullptr;
  const auto key = std::pair(job.io.coordinator, job.request.class_id);
  const auto known = windows_.find(key);
  if (known != windows_.end()) return &known->second;
  const uint64_t rate = RateOf(key.first, key.second, limit->second);
  Limit fresh{.window = client::LimitWindow(rate, 0, events_.now()), .coordinator = key.first};
  return &windows_.emplace(key, std::move(fresh)).first->second;
}

void Cluster::Send(Job* job) {
  Limit* limit = LimitOf(*job);
  if (limit == nullptr) return SendNow(job);
  limit->places[job->io.osd].held.push_back(job);
  limit->held_bytes += job->io.bytes;
  SendAdmitted(limit);
}

Cluster::Limit::Place* Cluster::NextPlace(Limit* limit) {
  std::vector<Limit::Place*> places;
  std::vector<client::OsdTurn> turns;
  for (auto& [osd, place] : limit->places) {
    if (place.held.empty()) continue;
    places.push_back(&place);
    turns.push_back({place.flying_bytes, place.held.front()->io.bytes, place.last_turn});
  }
  return places.empty() ? nullptr : places[client::NextOsdTurn(turns)];
}

void Cluster::SendAdmitted(Limit* limit) {
  std::vector<Job*> answered;
  while (!limit->answers.empty()) {
    Job* const job = limit->answers.front();
    if (!limit->window.AdmitsAnswer(job->arrived, events_.now())) break;
    limit->window.Answered(job->io.bytes, job->left, events_.now());
    limit->answers.pop_front();
    answered.push_back(job);
  }
  while (Limit::Place* const place = NextPlace(limit)) {
    Job* const job = place->held.front();
    if (!limit->window.Admits(OsdOf(*job), events_.now())) break;
    place->held.pop_front();
    place->flying_bytes += job->io.bytes;
    place->last_turn = ++limit->sent;
    limit->held_bytes -= job->io.bytes;
    limit->window.Sent(job->io.bytes, events_.now());
    job->left = events_.now();
    SendNow(job);
  }
  NoteHolding(limit);
  WakeFor(limit);
  for (Job* const job : answered) job->load->OnDone(job);
}

void Cluster::WakeFor(Limit* limit) {
  TimePoint when = TimePoint::Max();
  if (limit->held_bytes > 0) when = limit->window.AdmitsAt();
  if (!limit->answers.empty()) {
    when = std::min(when, limit->window.AdmitsAnswerAt(limit->answers.front()->arrived));
  }
  if (when == TimePoint::Max()) return;
  if (limit->wakes_at > events_.now() && limit->wakes_at <= when) return;
  limit->wakes_at = when;
  events_.At(when, [this, limit] { SendAdmitted(limit); });
}

void Cluster::NoteHolding(Limit* limit) {
  const bool holds = limit->held_bytes > 0 || !limit->answers.empty();
  if (holds && division_ != nullptr) division_->Wanted(limit->coordinator);
  if (holds == limit->holds) return;
  limit->holds = holds;
  if (holds) {
    limit->holds_since = events_.now();
  } else {
    limit->held_for += events_.now() - limit->holds_since;
  }
}

void Cluster::SendNow(Job* job) {
  const int64_t delay =
      tracker(job->io.coordinator).OnSend(job->request.class_id, OsdOf(*job), CostOf(*job));
  if (send_delays_) job->request.elsewhere = delay;
  if (hook_) hook_->OnSend(job);
  osds_[job->io.osd]->Send(job);
}

ClassSpec Spec(ClassId id, double weight) {
  ClassSpec spec;
  spec.id = id;
  spec.weight = weight;
  spec.min_weight = 0.1 * weight;
  return spec;
}

ClassSpec Reserved(ClassId id, uint64_t rate, double weight, ReservationScope scope) {
  ClassSpec spec = Spec(id, weight);
  spec.reservation = Reservation{rate, scope, std::nullopt};
  return spec;
}

}  // namespace weir::sim
