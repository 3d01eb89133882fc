#include "client/remote/object_windows.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "common/placement/divided_limits.h"
#include "common/qos/lane.h"

namespace weir::client {
namespace {
// What a request is taken to cost its OSD beyond its bytes, in bytes, each of a nanosecond: only
// ratios matter to flows.
constexpr uint64_t kFixedCost = 64 << 10;
// Turns of who is below his part of the class's promise, then one of whoever's turn it is.
constexpr uint32_t kOwedInRow = 7;
// What somebody waited longer ago says nothing of now.
constexpr Duration kWaitedLately = std::chrono::seconds(5);
constexpr OsdId kLastOsd{std::numeric_limits<uint32_t>::max()};
}  // namespace

ObjectWindows::ObjectWindows(ObjectStamps& stamps, MountMeter& meter, Options options)
    : stamps_(stamps), meter_(meter), options_(std::move(options)) {}

void ObjectWindows::Join(PendingOpPtr pending, TimePoint now, Departures* out) {
  const ClassId id = pending->op.class_id;
  Window& window = windows_[{id, pending->osd}];
  if (window.limit_bytes == 0) window.limit_bytes = options_.first_window_bytes;
  window.class_id = id;
  window.osd = pending->osd;
  pending->bounded = pending->delays.empty() && IsBounded(*pending, window);
  Queue(&window, std::move(pending));
  meter_.Queued(id, now);
  TakeDepartures(window, now, out);
}

void ObjectWindows::TakeDepartures(Window& window, TimePoint now, Departures* out) {
  const ClassId id = window.class_id;
  if (const auto limit = limits_.find(id); limit != limits_.end()) {
    const TimePoint next = TakeLimited(id, limit->second, now, out);
    if (next != TimePoint::Max()) options_.wake_by(next);
    return;
  }
  while (PendingOp* const next = NextIn(window, now)) TakeNext(window, next, now, out);
}

void ObjectWindows::Queue(Window* window, PendingOpPtr pending) {
  const ObjectOp& op = pending->op;
  const auto cost = Duration(static_cast<int64_t>(kFixedCost + op.cost()));
  window->flows.Add(pending.get(), op.flow.key(), op.cost(), cost);
  window->queue.push_back(std::move(pending));
  window->queue.back()->place = std::prev(window->queue.end());
  window->waiting_bytes += window->queue.back()->op.cost();
}

// Who is not among the first max_pending + 1 waits for his own, who asks for much for the device.
bool ObjectWindows::IsBounded(const PendingOp& pending, const Window& window) const {
  const auto found = map_->classes.find(pending.op.class_id);
  if (found == map_->classes.end() || LaneOf(pending.op.cost()) != Lane::kInteractive) return false;
  const ServiceContract& contract = found->second.spec.service;
  return contract.bound > Duration(0) &&
         window.queue.size() + window.flying_requests <= contract.max_pending;
}

// Who is owed has seven of eight turns, or all others would wait for as long as this mount is
// served less than his part; and none while a light request fits and his does not.
PendingOp* ObjectWindows::NextIn(const Window& window, TimePoint now) const {
  if (window.queue.empty()) return nullptr;
  auto* const first = static_cast<PendingOp*>(window.flows.First());
  PendingOp* const first_that_fits = Fits(window, *first) ? first : nullptr;
  const auto parts = parts_.find(window.class_id);
  if (parts == parts_.end() || window.owed_in_row >= kOwedInRow) return first_that_fits;
  auto* const owed = static_cast<PendingOp*>(parts->second.Owed(window.flows, now));
  return owed != nullptr && Fits(window, *owed) ? owed : first_that_fits;
}

bool ObjectWindows::Fits(const Window& window, const PendingOp& next) const {
  if (window.flying_requests == 0) return true;
  uint64_t bytes = window.limit_bytes;
  uint32_t requests = options_.window_requests;
  if (FlowOrder::IsLight(next)) {
    bytes += options_.beyond_bytes;
    requests += options_.beyond_requests;
  }
  return window.flying_bytes + next.op.cost() <= bytes && window.flying_requests < requests;
}

ObjectWindows::Turn ObjectWindows::NextOf(ClassId id, TimePoint now) {
  turns_.clear();
  osd_turns_.clear();
  const auto end = windows_.upper_bound({id, kLastOsd});
  for (auto it = windows_.lower_bound({id, OsdId(0)}); it != end; ++it) {
    Window& window = it->second;
    PendingOp* const next = NextIn(window, now);
    if (next == nullptr) continue;
    turns_.push_back({&window, next});
    osd_turns_.push_back({window.flying_bytes, next->op.cost(), window.last_turn});
  }
  return turns_.empty() ? Turn{} : turns_[NextOsdTurn(osd_turns_)];
}

TimePoint ObjectWindows::TakeLimited(ClassId id, Limit& limit, TimePoint now, Departures* out) {
  const TimePoint next_answer = TakeAnswers(limit, now, out);
  for (;;) {
    const Turn turn = NextOf(id, now);
    const bool held = turn.next != nullptr && !limit.window.Admits(turn.window->osd, now);
    if (held || turn.next == nullptr) {
      meter_.SetHeldByLimit(id, held || !limit.held.empty(), now);
      return held ? std::min(limit.window.AdmitsAt(), next_answer) : next_answer;
    }
    limit.window.Sent(turn.next->op.cost(), now);
    TakeNext(*turn.window, turn.next, now, out);
  }
}

TimePoint ObjectWindows::TakeAnswers(Limit& limit, TimePoint now, Departures* out) {
  while (!limit.held.empty()) {
    Answer& first = limit.held.front();
    if (!limit.window.AdmitsAnswer(first.arrived, now)) {
      return limit.window.AdmitsAnswerAt(first.arrived);
    }
    limit.window.Answered(first.pending->op.cost(), first.pending->left, now);
    out->answers.push_back(std::move(first));
    limit.held.pop_front();
  }
  return TimePoint::Max();
}

bool ObjectWindows::HoldsBack(const PendingOpPtr& pending, Result<ObjectOutcome>* result,
                              TimePoint now) {
  const auto found = limits_.find(pending->op.class_id);
  if (found == limits_.end()) return false;
  Limit& limit = found->second;
  if (limit.held.empty() && limit.window.AdmitsAnswer(now, now)) {
    limit.window.Answered(pending->op.cost(), pending->left, now);
    return false;
  }
  limit.held.push_back({pending, std::move(*result), now});
  return true;
}

void ObjectWindows::TakeHeld(Departures* out) {
  for (auto& [id, limit] : limits_) {
    std::move(limit.held.begin(), limit.held.end(), std::back_inserter(out->answers));
    limit.held.clear();
  }
}

void ObjectWindows::TakeNext(Window& window, PendingOp* next, TimePoint now, Departures* out) {
  window.owed_in_row = next == window.flows.First() ? 0 : window.owed_in_row + 1;
  window.flows.Take(next);
  if (const auto parts = parts_.find(window.class_id); parts != parts_.end()) {
    parts->second.Sent(next->op.flow.key().user, next->op.cost(), now);
  }
  PendingOpPtr pending = std::move(*next->place);
  window.queue.erase(next->place);
  const uint64_t bytes = pending->op.cost();
  window.waiting_bytes -= bytes;
  window.flying_bytes += bytes;
  ++window.flying_requests;
  window.last_turn = ++sent_;
  meter_.Sent(window.class_id, now);
  pending->left = now;
  ObjectSender::Stamp stamp = stamps_.Leaves(pending.get());
  const Duration waited = std::exchange(window.waited, Duration(0));
  if (now - window.waited_at < kWaitedLately) stamp.waited = waited;
  out->requests.push_back({std::move(pending), std::move(stamp)});
}

ObjectWindows::Window& ObjectWindows::Back(PendingOp* pending, const Result<ObjectOutcome>& result,
                                           TimePoint now) {
  const ClassId id = pending->op.class_id;
  Window& window = windows_[{id, pending->osd}];
  FlowOrder::Done(pending);
  window.flying_bytes -= pending->op.cost();
  --window.flying_requests;
  NoteBack(*pending, result, now);
  meter_.Back(id, now);
  if (!result.ok()) {
    if (result.code() == ErrorCode::kUnreachable) meter_.Lost(id, now - pending->left);
    return window;
  }
  meter_.Answered(id, pending->op.length, now - pending->left, result->server_time);
  if (result->window_bytes != 0) window.limit_bytes = result->window_bytes;
  if (pending->bounded) NoteWaited(*pending, result->limit_time, now, &window);
  window.answered_bytes += pending->op.length;
  ++window.answered_requests;
  return window;
}

// What the class's own limit held back, here or there, is no reason to hold back others.
void ObjectWindows::NoteWaited(const PendingOp& pending, Duration limited, TimePoint now,
                               Window* window) {
  const bool limit_here = limits_.contains(pending.op.class_id);
  const Duration waited = now - (limit_here ? pending.left : pending.asked) - limited;
  window->waited = std::max(window->waited, waited);
  window->waited_at = now;
}

void ObjectWindows::NoteBack(const PendingOp& pending, const Result<ObjectOutcome>& result,
                             TimePoint now) {
  const auto found = limits_.find(pending.op.class_id);
  if (found == limits_.end()) return;
  LimitWindow& limit = found->second.window;
  if (!result.ok()) return limit.Failed(pending.op.cost(), pending.left);
  // An answer that says nothing of its time may have stood at the limit of its OSD.
  if (result->server_time == Duration(0)) return;
  limit.Took(pending.osd, now - pending.left - result->limit_time, now);
}

TimePoint ObjectWindows::TakeDue(TimePoint now, Departures* out) {
  TimePoint next = TimePoint::Max();
  for (auto& [id, limit] : limits_) next = std::min(next, TakeLimited(id, limit, now, out));
  return next;
}

void ObjectWindows::SetMap(std::shared_ptr<const ClusterMap> map, TimePoint now, Departures* out) {
  map_ = std::move(map);
  SetParts(now);
  if (options_.wake_by) SetLimits(now, out);
}

void ObjectWindows::SetParts(TimePoint now) {
  const auto promise = [this](ClassId id) -> const Reservation* {
    const auto entry = map_->classes.find(id);
    if (entry == map_->classes.end() || !entry->second.spec.reservation) return nullptr;
    const Reservation& reservation = *entry->second.spec.reservation;
    return reservation.users.empty() ? nullptr : &reservation;
  };
  std::erase_if(parts_, [&promise](const auto& one) { return promise(one.first) == nullptr; });
  for (const auto& [id, entry] : map_->classes) {
    if (const Reservation* given = promise(id)) parts_[id].Set(*given, map_->osds.size(), now);
  }
}

void ObjectWindows::SetLimits(TimePoint now, Departures* out) {
  std::erase_if(limits_, [this, now, out](auto& limit) {
    const auto entry = map_->classes.find(limit.first);
    if (entry != map_->classes.end() && IsLimitedOverOsds(*map_, entry->second.spec)) return false;
    meter_.SetHeldByLimit(limit.first, false, now);
    auto& held = limit.second.held;
    std::move(held.begin(), held.end(), std::back_inserter(out->answers));
    return true;
  });
  for (const auto& [id, entry] : map_->classes) {
    if (!IsLimitedOverOsds(*map_, entry.spec)) continue;
    const uint64_t rate = LimitOf(entry.spec);
    if (const auto known = limits_.find(id); known != limits_.end()) {
      known->second.window.SetRate(rate, now);
      continue;
    }
    uint64_t flying = 0;
    for (const auto& [key, window] : windows_) flying += key.first == id ? window.flying_bytes : 0;
    limits_.emplace(id, Limit{.window = LimitWindow(rate, flying, now), .held = {}});
  }
  // A limit that rose or went lets others leave.
  for (auto& [key, window] : windows_) TakeDepartures(window, now, out);
}

uint64_t ObjectWindows::LimitOf(const ClassSpec& spec) const {
  const auto part = limit_parts_.find(spec.id);
  return part == limit_parts_.end() ? 0 : BytesOf(part->second, *spec.limit_bytes_per_s);
}

void ObjectWindows::SetLimitParts(std::map<ClassId, double> parts, uint64_t order, TimePoint now,
                                  Departures* out) {
  if (order < limit_parts_order_) return;
  limit_parts_order_ = order;
  limit_parts_ = std::move(parts);
  for (auto& [id, limit] : limits_) {
    limit.window.SetRate(LimitOf(map_->classes.at(id).spec), now);
  }
  if (const TimePoint next = TakeDue(now, out); next != TimePoint::Max()) options_.wake_by(next);
}

std::map<ClassId, LimitShare::Counts> ObjectWindows::LimitCounts(TimePoint now) {
  std::map<ClassId, LimitShare::Counts> all;
  if (limits_.empty()) return all;
  const std::map<ClassId, MountClassTimes> times = meter_.Times(now);
  for (const auto& [id, limit] : limits_) {
    LimitShare::Counts& counts = all[id];
    counts.served_bytes = limit.window.served_bytes();
    if (const auto one = times.find(id); one != times.end()) {
      counts.limited = Duration(static_cast<int64_t>(one->second.limited_ns));
    }
    const auto end = windows_.upper_bound({id, kLastOsd});
    for (auto it = windows_.lower_bound({id, OsdId(0)}); it != end; ++it) {
      counts.queued_bytes += it->second.waiting_bytes;
    }
  }
  return all;
}

uint64_t ObjectWindows::InFlightBytes(ClassId class_id, OsdId osd) const {
  const auto it = windows_.find({class_id, osd});
  return it == windows_.end() ? 0 : it->second.flying_bytes;
}

std::map<ClassId, ObjectWindows::ClassLoad> ObjectWindows::Loads() const {
  std::map<ClassId, ClassLoad> loads;
  for (const auto& [key, window] : windows_) {
    ClassLoad& load = loads[key.first];
    load.flying_bytes += window.flying_bytes;
    load.flying_requests += window.flying_requests;
    load.waiting_requests += window.queue.size();
    load.answered_bytes += window.answered_bytes;
    load.answered_requests += window.answered_requests;
  }
  return loads;
}

}  // namespace weir::client
