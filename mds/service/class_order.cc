#include "mds/service/class_order.h"

#include <algorithm>
#include <unordered_map>

#include "common/qos/lane.h"

namespace weir::mds {
namespace {

// What an operation of cost 1 takes, about, and the size that makes a flow with more than kLittle
// of them under way a heavy one.
constexpr Duration kTimeOfOne = std::chrono::microseconds(20);
constexpr uint64_t kBytesOfOne = kLightBytes / ClassOrder::kLittle;
static_assert(kBytesOfOne <= kInteractiveBytesMax);

// How far a promise takes a class ahead of its share at most, in operations by weight: else it
// would stand behind everybody for long when the promise ends.
constexpr double kAheadMost = 64;
// Of the classes whose turn is next, so many are looked at for one that asks for little.
constexpr int kLooksMost = 16;

// The moment from which the next one is within the rate, when one more has begun now.
TimePoint After(TimePoint before, uint64_t per_s, Duration burst, TimePoint now) {
  return std::max(before, now - burst) + FromSeconds(1 / static_cast<double>(per_s));
}

}  // namespace

struct ClassOrder::Class {
  ClassId id;
  uint64_t number = 0;
  Terms terms;
  FlowOrder flows;
  uint64_t waiting = 0;
  enum class Stands : uint8_t { kNowhere, kReady, kHeld } stands = Stands::kNowhere;
  double start = 0;       // while it is ready
  double finish = 0;      // tag of its last operation
  uint64_t sequence = 0;  // since it is ready
  TimePoint limit_at;     // the limit lets the next one go from then on
  TimePoint promise_at;   // from then on the promise is behind
  TimePoint filed_promise_at;
  TimePoint filed_limit_at;
  std::unordered_map<uint64_t, uint32_t> begun_of;  // users with something begun and not over
  uint64_t operations = 0, delayed = 0, limited = 0;
  Metered* meter = nullptr;  // of its id
};

namespace {

// Between users an operation counts for the time in which the class may have one: at its limit that
// is more than what the MDS needs, and what is light would go ahead for seconds.
Duration TurnOf(const ClassOrder::Terms& terms) {
  if (terms.limit_per_s == 0) return kTimeOfOne;
  return std::max(kTimeOfOne, FromSeconds(1 / static_cast<double>(terms.limit_per_s)));
}

double CostNs(const ClassOrder::Item& item) {
  return static_cast<double>((kTimeOfOne * item.cost).count());
}

}  // namespace

ClassOrder::ClassOrder() = default;
ClassOrder::~ClassOrder() = default;

void ClassOrder::SetTerms(Class* one, const Terms& terms, TimePoint now) {
  // A new rate counts from now on: what went by the old one is neither a debt nor a credit.
  if (one->terms.limit_per_s != terms.limit_per_s) one->limit_at = now;
  if (one->terms.promised_per_s != terms.promised_per_s) one->promise_at = now;
  one->terms = terms;
}

void ClassOrder::File(Class* one, TimePoint now) {
  if (one->waiting == 0) return;
  if (one->terms.limit_per_s > 0 && one->limit_at > now) {
    one->stands = Class::Stands::kHeld;
    one->filed_limit_at = one->limit_at;
    held_.emplace(one->filed_limit_at, one->number, one);
    return;
  }
  one->stands = Class::Stands::kReady;
  one->start = std::max(time_, one->finish);
  one->sequence = ++sequence_;
  ready_.emplace(one->start, one->sequence, one);
  if (one->terms.promised_per_s == 0) return;
  one->filed_promise_at = one->promise_at;
  promised_.emplace(one->filed_promise_at, one->number, one);
}

void ClassOrder::Unfile(Class* one) {
  switch (one->stands) {
    case Class::Stands::kNowhere:
      return;
    case Class::Stands::kHeld:
      held_.erase({one->filed_limit_at, one->number, one});
      break;
    case Class::Stands::kReady:
      ready_.erase({one->start, one->sequence, one});
      promised_.erase({one->filed_promise_at, one->number, one});
      break;
  }
  one->stands = Class::Stands::kNowhere;
}

void ClassOrder::Add(Item* item, const Request& request, TimePoint now) {
  const bool apart = request.report;
  const Terms terms = apart ? Terms{.weight = request.terms.weight} : request.terms;
  std::unique_ptr<Class>& entry = classes_[{request.class_id, apart}];
  if (entry == nullptr) {
    entry = std::make_unique<Class>();
    entry->id = request.class_id;
    entry->number = classes_.size();
    entry->meter = &meters_.try_emplace(request.class_id, now).first->second;
  }
  Class& one = *entry;
  if (one.terms != terms) {
    Unfile(&one);
    SetTerms(&one, terms, now);
  }
  item->of = &one;
  item->session = request.session;
  item->report = request.report;
  Link(item);
  item->user = request.flow.user;
  item->cost = request.cost;
  item->ticket = {.key = request.counted_for, .cost_ns = CostNs(*item)};
  item->owner = request.owner;
  one.meter->waiting.Come(&item->ticket, now, [item] { return item->owner; });
  one.flows.Add(item, request.flow, kBytesOfOne, TurnOf(terms) * request.cost);
  item->light = FlowOrder::IsLight(*item);
  ++one.waiting;
  ++one.operations;
  if (one.stands == Class::Stands::kNowhere) File(&one, now);
  if (one.stands == Class::Stands::kHeld) ++one.limited;
}

void ClassOrder::Link(Item* item) {
  item->before = std::exchange(last_, item);
  item->after = nullptr;
  if (item->before != nullptr) item->before->after = item;
}

void ClassOrder::Unlink(Item* item) {
  if (item->before != nullptr) item->before->after = item->after;
  (item->after != nullptr ? item->after->before : last_) = item->before;
}

void ClassOrder::ReleaseHeld(TimePoint now) {
  while (!held_.empty() && std::get<TimePoint>(*held_.begin()) <= now) {
    Class* const one = std::get<Class*>(*held_.begin());
    Unfile(one);
    File(one, now);
  }
}

ClassOrder::Class* ClassOrder::Owed(TimePoint now) const {
  if (promised_.empty() || std::get<TimePoint>(*promised_.begin()) > now) return nullptr;
  Class* const one = std::get<Class*>(*promised_.begin());
  return promised_in_turn_ < kPromisedInTurn || ready_.size() == 1 ? one : nullptr;
}

ClassOrder::Item* ClassOrder::Next(TimePoint now) {
  ReleaseHeld(now);
  if (ready_.empty()) return nullptr;
  Class* one = Owed(now);
  if (one == nullptr) one = std::get<Class*>(*ready_.begin());
  return static_cast<Item*>(one->flows.First());
}

ClassOrder::Item* ClassOrder::NextOfLittle(TimePoint now) {
  ReleaseHeld(now);
  int looks = 0;
  for (const auto& [start, sequence, one] : ready_) {
    Item* const item = static_cast<Item*>(one->flows.First());
    const auto begun = one->begun_of.find(item->user);
    if (begun == one->begun_of.end() || begun->second < kLittle) return item;
    if (++looks == kLooksMost) break;
  }
  return nullptr;
}

void ClassOrder::Take(Item* item, TimePoint now) {
  Class& one = *item->of;
  const double cost = item->cost / one.terms.weight;
  const bool owed = &one == Owed(now);
  if (owed) {
    ++promised_in_turn_;
    one.finish = std::max(one.finish, std::min(one.start + cost, time_ + kAheadMost * cost));
  } else {
    promised_in_turn_ = 0;
    time_ = std::max(time_, one.start);
    one.finish = one.start + cost;
  }
  Unfile(&one);
  if (one.terms.limit_per_s > 0) {
    one.limit_at = After(one.limit_at, one.terms.limit_per_s, kLimitBurst, now);
  }
  if (one.terms.promised_per_s > 0) {
    one.promise_at = After(one.promise_at, one.terms.promised_per_s, kPromiseBurst, now);
  }
  one.flows.Take(item);
  Unlink(item);
  --one.waiting;
  if (item->delayed) ++one.delayed;
  const WaitingFlows::Ticket& ticket = item->ticket;
  one.meter->waiting.Leave(ticket);
  one.meter->began.Add(ticket.key,
                       {.device_ns = ticket.cost_ns,
                        .requests = 1,
                        .light_requests = item->light ? 1U : 0U,
                        .waited = now - ticket.came},
                       now, [item] { return item->owner; });
  ++one.begun_of[item->user];
  File(&one, now);
}

void ClassOrder::Done(Item* item) {
  Class& one = *item->of;
  const auto begun = one.begun_of.find(item->user);
  if (--begun->second == 0) one.begun_of.erase(begun);
  FlowOrder::Done(item);
}

void ClassOrder::Renew(const std::function<Terms(ClassId)>& terms_of, TimePoint now) {
  for (auto& [key, one] : classes_) {
    const auto& [id, apart] = key;
    const Terms terms = terms_of(id);
    Unfile(one.get());
    SetTerms(one.get(), apart ? Terms{.weight = terms.weight} : terms, now);
    File(one.get(), now);
  }
}

std::vector<ClassOrder::Item*> ClassOrder::DropSession(uint64_t session) {
  std::vector<Item*> dropped;
  for (Item* next = last_; next != nullptr;) {
    Item* const item = std::exchange(next, next->before);
    if (item->session != session || item->report) continue;
    Class& one = *item->of;
    Unlink(item);
    one.meter->waiting.Leave(item->ticket);
    one.flows.Leave(item);
    if (--one.waiting == 0) Unfile(&one);
    dropped.push_back(item);
  }
  return dropped;
}

std::vector<ClassOrder::Item*> ClassOrder::DropAll() {
  std::vector<Item*> dropped;
  last_ = nullptr;
  for (auto& [key, one] : classes_) {
    Unfile(one.get());
    one->waiting = 0;
    while (FlowOrder::Item* const first = one->flows.First()) {
      one->flows.Leave(first);
      dropped.push_back(static_cast<Item*>(first));
      one->meter->waiting.Leave(dropped.back()->ticket);
    }
  }
  return dropped;
}

TimePoint ClassOrder::NextAt() const {
  return held_.empty() ? TimePoint::Max() : std::get<TimePoint>(*held_.begin());
}

std::vector<ClassOrder::Load> ClassOrder::Loads() const {
  std::vector<Load> loads;
  for (const auto& [key, one] : classes_) {
    if (loads.empty() || loads.back().class_id != one->id) loads.push_back({.class_id = one->id});
    Load& load = loads.back();
    load.operations += one->operations;
    load.queued += one->waiting;
    load.delayed += one->delayed;
    load.limited += one->limited;
  }
  return loads;
}

std::vector<ClassId> ClassOrder::Classes() const {
  std::vector<ClassId> ids;
  for (const auto& [id, meter] : meters_) ids.push_back(id);
  return ids;
}

FlowMeter::Look ClassOrder::FlowsOf(ClassId id, TimePoint now) {
  Metered& meter = meters_.at(id);
  FlowMeter::Look look = meter.began.LookAt(now);
  meter.waiting.AddTo(&look, now);
  return look;
}

}  // namespace weir::mds
