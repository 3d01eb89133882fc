#include "client/remote/object_io.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "common/placement/divided_limits.h"
#include "common/qos/lane.h"

namespace weir::client {
namespace {
constexpr uint32_t kChecksumRetries = 1;
// What a request is taken to cost its OSD beyond its bytes, in bytes, each of a nanosecond: only
// ratios matter to flows.
constexpr uint64_t kFixedCost = 64 << 10;
// Turns of who is below his part of the class's promise, then one of whoever's turn it is.
constexpr uint32_t kOwedInRow = 7;
// What somebody waited longer ago says nothing of now.
constexpr Duration kWaitedLately = std::chrono::seconds(5);

bool ReadIsIntact(const ObjectOp& op, const Result<ObjectOutcome>& result) {
  return op.write || !result.ok() || result->payload.size() <= op.length;
}

bool IsAbandoned(const ObjectOp& op) {
  return op.abandoned != nullptr && *op.abandoned;
}

bool IsFenced(const ObjectOp& op) {
  return op.fenced != nullptr && *op.fenced;
}

Status FencedError() {
  return {ErrorCode::kStale, "this mount was silent for too long: others may have written since"};
}

bool Passing(ErrorCode code) {
  return code == ErrorCode::kStaleEpoch || code == ErrorCode::kUnreachable ||
         code == ErrorCode::kCancelled || code == ErrorCode::kBusy;
}

bool SourceIsThere(const SlotChains& chains, const ObjectOp& op, OsdId osd) {
  if (op.verb != ObjectOp::Verb::kCopy) return true;
  const auto place = chains.Of(op.pool, op.source);
  return place.has_value() && place->chain->head() == osd;
}

// A read asks one member, a change goes through all that serve or come back.
std::vector<OsdId> PathOf(const Chain& chain, bool write) {
  std::vector<OsdId> path;
  for (const replication::Member& member : chain.members) {
    if (member.state == replication::MemberState::kOffline) break;
    path.push_back(member.osd);
    if (!write) break;
  }
  return path;
}
}  // namespace

ObjectIo::ObjectIo(Clock& clock, ObjectSender& sender, Options options)
    : clock_(clock),
      sender_(sender),
      options_(std::move(options)),
      ids_(options_.session, options_.ids_above),
      room_waits_(clock, options_.ask_removals) {}

ObjectIo::~ObjectIo() = default;

void ObjectIo::Submit(ObjectOp op) {
  NewFiles* const files = options_.new_files;
  if (op.write && files != nullptr && files->IsNew(op.object.inode)) {
    files->AwaitDurable(
        [this, op = std::make_shared<ObjectOp>(std::move(op))](const Status& status) {
          if (!status.ok()) return op->done(status);
          Send(std::move(*op));
        });
    return;
  }
  Send(std::move(op));
}

void ObjectIo::Send(ObjectOp op) {
  auto pending = std::make_shared<Pending>();
  pending->op = std::move(op);
  pending->asked = clock_.Now();
  if (options_.timeout != Duration::max()) pending->deadline = pending->asked + options_.timeout;
  Route(std::move(pending));
}

void ObjectIo::Route(PendingPtr pending) {
  std::vector<Departure> departures;
  Status error;
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    const auto place = chains_.Of(pending->op.pool, pending->op.object);
    if (stopped_) {
      error = Status(ErrorCode::kCancelled, "the mount is going away");
    } else if (IsAbandoned(pending->op)) {
      // Late, it would overwrite what others have written since.
      error = Status(ErrorCode::kCancelled, "its process was killed");
    } else if (IsFenced(pending->op)) {
      error = FencedError();
    } else if (map_ != nullptr && !map_->pools.contains(pending->op.pool)) {
      error = Status(ErrorCode::kIo, "object " + std::to_string(pending->op.object.inode.value) +
                                         " lies in a pool that does not exist any more");
    } else if (!place.has_value()) {
      Park(std::move(pending), now);  // a pool may still get its first OSD
      return;
    } else {
      pending->osd = place->chain->head();
      pending->slot = place->slot;
      pending->chain_version = place->chain->version;
      pending->path = PathOf(*place->chain, pending->op.write);
      if (!SourceIsThere(chains_, pending->op, pending->osd)) {
        error = Status(ErrorCode::kNotSupported, "the source of the copy is on another OSD");
      }
    }
    if (!error.ok()) {
      EndNumberLocked(*pending);
    } else {
      const Key key{pending->op.class_id, pending->osd};
      Window& window = windows_[key];
      if (window.limit_bytes == 0) window.limit_bytes = options_.first_window_bytes;
      window.class_id = key.first;
      pending->bounded = pending->delays.empty() && IsBounded(*pending, window);
      Queue(&window, std::move(pending));
      meter_.Queued(key.first, now);
      TakeDepartures(key, window, now, &departures);
    }
  }
  // NOLINTNEXTLINE(bugprone-use-after-move): queued only without an error
  if (!error.ok()) return pending->op.done(std::move(error));
  SendAll(std::move(departures));
}

void ObjectIo::TakeDepartures(const Key& key, Window& window, TimePoint now,
                              std::vector<Departure>* out) {
  if (const auto limit = limits_.find(key.first); limit != limits_.end()) {
    const TimePoint next = TakeLimited(key.first, limit->second, now, out);
    if (next != TimePoint::Max()) options_.wake_by(next);
    return;
  }
  while (Pending* const next = NextIn(window, now)) TakeNext(key, window, next, now, out);
}

void ObjectIo::Queue(Window* window, PendingPtr pending) {
  const ObjectOp& op = pending->op;
  const auto cost = Duration(static_cast<int64_t>(kFixedCost + op.cost()));
  window->flows.Add(pending.get(), op.flow.key(), op.cost(), cost);
  window->queue.push_back(std::move(pending));
  window->queue.back()->place = std::prev(window->queue.end());
  window->waiting_bytes += window->queue.back()->op.cost();
}

// Who is not among the first max_pending + 1 waits for his own, who asks for much for the device.
bool ObjectIo::IsBounded(const Pending& pending, const Window& window) const {
  const auto found = map_->classes.find(pending.op.class_id);
  if (found == map_->classes.end() || LaneOf(pending.op.cost()) != Lane::kInteractive) return false;
  const ServiceContract& contract = found->second.spec.service;
  return contract.bound > Duration(0) &&
         window.queue.size() + window.flying_requests <= contract.max_pending;
}

// Who is owed has seven of eight turns, or all others would wait for as long as this mount is
// served less than his part; and none while a light request fits and his does not.
ObjectIo::Pending* ObjectIo::NextIn(const Window& window, TimePoint now) const {
  if (window.queue.empty()) return nullptr;
  auto* const first = static_cast<Pending*>(window.flows.First());
  Pending* const first_that_fits = Fits(window, *first) ? first : nullptr;
  const auto parts = parts_.find(window.class_id);
  if (parts == parts_.end() || window.owed_in_row >= kOwedInRow) return first_that_fits;
  auto* const owed = static_cast<Pending*>(parts->second.Owed(window.flows, now));
  return owed != nullptr && Fits(window, *owed) ? owed : first_that_fits;
}

bool ObjectIo::Fits(const Window& window, const Pending& next) const {
  if (window.flying_requests == 0) return true;
  uint64_t bytes = window.limit_bytes;
  uint32_t requests = options_.window_requests;
  if (FlowOrder::IsLight(next)) {
    bytes += options_.beyond_bytes;
    requests += options_.beyond_requests;
  }
  return window.flying_bytes + next.op.cost() <= bytes && window.flying_requests < requests;
}

// The OSDs in turns: what comes back from one of them at once would leave at once again, and with
// the order of arrival that OSD alone would have all that the limit lets go, of which it gives the
// class its share only. One that answers so slowly that it has more under way than twice what
// another has, and two requests, is left out: that counts against the limit, too.
ObjectIo::Turn ObjectIo::NextOf(ClassId id, TimePoint now) {
  turns_.clear();
  const auto end = windows_.upper_bound({id, OsdId(std::numeric_limits<uint32_t>::max())});
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (auto it = windows_.lower_bound({id, OsdId(0)}); it != end; ++it) {
    Pending* const next = NextIn(it->second, now);
    if (next == nullptr) continue;
    turns_.push_back({it, next});
    least = std::min(least, it->second.flying_bytes);
  }
  Turn turn;
  for (const Turn& one : turns_) {
    const Window& window = one.window->second;
    const bool slow = window.flying_bytes > 2 * (least + one.next->op.cost());
    const bool later = turn.next != nullptr && turn.window->second.last_turn < window.last_turn;
    if (!slow && !later) turn = one;
  }
  return turn;
}

TimePoint ObjectIo::TakeLimited(ClassId id, LimitWindow& limit, TimePoint now,
                                std::vector<Departure>* out) {
  for (;;) {
    const Turn turn = NextOf(id, now);
    const bool held = turn.next != nullptr && !limit.Admits(turn.window->first.second, now);
    if (held || turn.next == nullptr) {
      meter_.SetHeldByLimit(id, held, now);
      return held ? limit.AdmitsAt() : TimePoint::Max();
    }
    limit.Sent(turn.next->op.cost(), now);
    TakeNext(turn.window->first, turn.window->second, turn.next, now, out);
  }
}

void ObjectIo::TakeNext(const Key& key, Window& window, Pending* next, TimePoint now,
                        std::vector<Departure>* out) {
  window.owed_in_row = next == window.flows.First() ? 0 : window.owed_in_row + 1;
  window.flows.Take(next);
  if (const auto parts = parts_.find(key.first); parts != parts_.end()) {
    parts->second.Sent(next->op.flow.key().user, next->op.cost(), now);
  }
  PendingPtr pending = std::move(*next->place);
  window.queue.erase(next->place);
  const uint64_t bytes = pending->op.cost();
  window.waiting_bytes -= bytes;
  window.flying_bytes += bytes;
  ++window.flying_requests;
  window.last_turn = ++counters_.sent;
  meter_.Sent(key.first, now);
  pending->left = now;
  ObjectSender::Stamp stamp = StampLocked(*pending, bytes);
  const Duration waited = std::exchange(window.waited, Duration(0));
  if (now - window.waited_at < kWaitedLately) stamp.waited = waited;
  out->push_back({std::move(pending), std::move(stamp)});
}

ObjectSender::Stamp ObjectIo::StampLocked(Pending& pending, uint64_t bytes) {
  const ObjectOp& op = pending.op;
  pending.delays.resize(std::min(pending.delays.size(), pending.path.size()));
  for (size_t i = pending.delays.size(); i < pending.path.size(); ++i) {
    pending.delays.push_back(DelayLocked(op.class_id, pending.path[i], bytes));
  }
  ObjectSender::Stamp stamp;
  stamp.osd = pending.osd;
  stamp.delays = pending.delays;
  stamp.epoch = map_->epoch.value;
  stamp.cluster = cluster_hash_;
  stamp.slot = pending.slot;
  stamp.chain_version = pending.chain_version;
  if (op.write && ids_.session() != 0) {
    if (pending.number == 0) pending.number = ids_.Begin(op.object);
    stamp.op = {ids_.session(), pending.number};
    stamp.floors = ids_.FloorsOf(op.object);
  }
  return stamp;
}

// In the unit of the OSD's cost.
uint64_t ObjectIo::DelayLocked(ClassId id, OsdId osd, uint64_t bytes) {
  const int64_t tokens = tokens_sent_.OnSend(id, osd, TokensOf(bytes));
  const int64_t requests = requests_sent_.OnSend(id, osd, 1);
  const auto entry = map_->osds.find(osd);
  const bool counts_requests =
      entry != map_->osds.end() && entry->second.qos.cost == CostKind::kRequests;
  return static_cast<uint64_t>(counts_requests ? requests : tokens);
}

void ObjectIo::EndNumberLocked(Pending& pending) {
  if (pending.number != 0) ids_.End(pending.op.object, std::exchange(pending.number, 0));
}

// What the class's own limit held back, here or there, is no reason to hold back others.
void ObjectIo::NoteWaited(const Pending& pending, Duration limited, TimePoint now, Window* window) {
  const bool limit_here = limits_.contains(pending.op.class_id);
  const Duration waited = now - (limit_here ? pending.left : pending.asked) - limited;
  window->waited = std::max(window->waited, waited);
  window->waited_at = now;
}

void ObjectIo::NoteBack(const Pending& pending, const Result<ObjectOutcome>& result,
                        TimePoint now) {
  const auto found = limits_.find(pending.op.class_id);
  if (found == limits_.end()) return;
  LimitWindow& limit = found->second;
  if (!result.ok()) return limit.Failed(pending.op.cost(), pending.left);
  limit.Answered(pending.op.cost(), pending.left, now);
  // An answer that says nothing of its time may have stood at the limit of its OSD.
  if (result->server_time == Duration(0)) return;
  limit.Took(pending.osd, now - pending.left - result->limit_time, now);
}

TimePoint ObjectIo::SendDue() {
  std::vector<Departure> departures;
  TimePoint next = TimePoint::Max();
  {
    std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    if (stopped_) return next;
    for (auto& [id, limit] : limits_) {
      next = std::min(next, TakeLimited(id, limit, now, &departures));
    }
  }
  SendAll(std::move(departures));
  return next;
}

void ObjectIo::SetPartsLocked(TimePoint now) {
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

void ObjectIo::SetLimitsLocked(TimePoint now, std::vector<Departure>* out) {
  if (!options_.wake_by) return;
  std::erase_if(limits_, [this, now](const auto& limit) {
    const auto entry = map_->classes.find(limit.first);
    const bool stays = entry != map_->classes.end() && IsLimitedOverOsds(*map_, entry->second.spec);
    if (!stays) meter_.SetHeldByLimit(limit.first, false, now);
    return !stays;
  });
  for (const auto& [id, entry] : map_->classes) {
    if (!IsLimitedOverOsds(*map_, entry.spec)) continue;
    const uint64_t rate = LimitOf(entry.spec);
    if (const auto known = limits_.find(id); known != limits_.end()) {
      known->second.SetRate(rate, now);
      continue;
    }
    uint64_t flying = 0;
    for (const auto& [key, window] : windows_) flying += key.first == id ? window.flying_bytes : 0;
    limits_.emplace(id, LimitWindow(rate, flying, now));
  }
  if (stopped_) return;
  // A limit that rose or went lets others leave.
  for (auto& [key, window] : windows_) TakeDepartures(key, window, now, out);
}

uint64_t ObjectIo::LimitOf(const ClassSpec& spec) const {
  const auto part = limit_parts_.find(spec.id);
  return part == limit_parts_.end() ? 0 : BytesOf(part->second, *spec.limit_bytes_per_s);
}

void ObjectIo::SetLimitParts(std::map<ClassId, double> parts, uint64_t order) {
  std::vector<Departure> departures;
  {
    std::lock_guard lock(mutex_);
    if (order < limit_parts_order_) return;
    limit_parts_order_ = order;
    limit_parts_ = std::move(parts);
    if (map_ == nullptr || stopped_) return;
    const TimePoint now = clock_.Now();
    for (auto& [id, limit] : limits_) {
      limit.SetRate(LimitOf(map_->classes.at(id).spec), now);
      const TimePoint next = TakeLimited(id, limit, now, &departures);
      if (next != TimePoint::Max()) options_.wake_by(next);
    }
  }
  SendAll(std::move(departures));
}

std::map<ClassId, LimitShare::Counts> ObjectIo::LimitCounts() {
  std::map<ClassId, LimitShare::Counts> all;
  std::lock_guard lock(mutex_);
  if (limits_.empty()) return all;
  const std::map<ClassId, MountClassTimes> times = meter_.Times(clock_.Now());
  for (const auto& [id, limit] : limits_) {
    LimitShare::Counts& counts = all[id];
    counts.served_bytes = limit.served_bytes();
    if (const auto one = times.find(id); one != times.end()) {
      counts.limited = Duration(static_cast<int64_t>(one->second.limited_ns));
    }
    const auto end = windows_.upper_bound({id, OsdId(std::numeric_limits<uint32_t>::max())});
    for (auto it = windows_.lower_bound({id, OsdId(0)}); it != end; ++it) {
      counts.queued_bytes += it->second.waiting_bytes;
    }
  }
  return all;
}

void ObjectIo::SendAll(std::vector<Departure> departures) {
  for (Departure& departure : departures) {
    const Key key{departure.pending->op.class_id, departure.stamp.osd};
    const ObjectOp& op = departure.pending->op;
    sender_.Send(op, departure.stamp,
                 [this, key, pending = departure.pending](ObjectAnswer answer) {
                   OnReply(pending, key, std::move(answer));
                 });
  }
}

void ObjectIo::OnReply(const PendingPtr& pending, const Key& key, ObjectAnswer answer) {
  Result<ObjectOutcome>& result = answer.result;
  if (!ReadIsIntact(pending->op, result)) {
    result = Status(ErrorCode::kBadMessage, "an OSD answered more than was asked for");
  }
  std::vector<Departure> departures;
  Then then = Then::kEnd;
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    Window& window = windows_[key];
    FlowOrder::Done(pending.get());
    window.flying_bytes -= pending->op.cost();
    --window.flying_requests;
    NoteBack(*pending, result, now);
    meter_.Back(key.first, now);
    if (result.ok()) {
      meter_.Answered(key.first, pending->op.length, now - pending->left, result->server_time);
    } else if (result.code() == ErrorCode::kUnreachable) {
      meter_.Lost(key.first, now - pending->left);
    }
    if (result.ok() && result->window_bytes != 0) window.limit_bytes = result->window_bytes;
    if (result.ok() && result->free_bytes.has_value()) {
      room_.Told(key.second, pending->op.tier, *result->free_bytes, now);
    }
    if (result.ok()) {
      if (pending->bounded) NoteWaited(*pending, result->limit_time, now, &window);
      window.answered_bytes += pending->op.length;
      ++window.answered_requests;
    }
    if (!result.ok()) then = AfterLocked(pending, &answer);
    if (then == Then::kEnd) EndNumberLocked(*pending);
    // What it did the first time does not count as grown any more.
    if (result.ok() && pending->again) result->grown_bytes.reset();
    if (!stopped_) TakeDepartures(key, window, now, &departures);
  }
  SendAll(std::move(departures));
  if (then == Then::kNow) Route(pending);
  if (then != Then::kEnd) return;
  if (result.code() != ErrorCode::kNoSpace) return pending->op.done(std::move(result));
  pending->room.gone = [&op = pending->op] { return IsAbandoned(op) || IsFenced(op); };
  room_waits_.Await(&pending->room, [this, pending, result = std::move(result)](bool goes_again) {
    // Of who is gone that says why.
    if (goes_again || pending->room.gone()) return Route(pending);
    pending->op.done(result);
  });
}

auto ObjectIo::AfterLocked(const PendingPtr& pending, ObjectAnswer* answer) -> Then {
  if (stopped_) return Then::kEnd;
  const ErrorCode code = answer->result.code();
  const ObjectOp& op = pending->op;
  if (answer->newer_chain.has_value()) {
    (void)chains_.Take(op.pool, pending->slot, *std::move(answer->newer_chain));
  }
  // A checksum that is wrong on arrival says nothing of the disk: once more.
  const bool checksum = code == ErrorCode::kCorrupt || code == ErrorCode::kBadMessage;
  if (checksum) {
    ++counters_.checksum_errors;
    if (pending->checksum_retries++ >= kChecksumRetries) return Then::kEnd;
  }
  // Out of time, but the OSD is alive: it is only slow, as it may be for a throttled class.
  const bool slow = code == ErrorCode::kTimedOut && sender_.Reachable(pending->osd);
  if (!checksum && !slow && !Passing(code)) return Then::kEnd;
  if (!checksum && !slow && clock_.Now() >= pending->deadline) return Then::kEnd;
  ++counters_.retried;
  pending->again = true;
  const Chain* const chain = chains_.Find(op.pool, pending->slot);
  if (code == ErrorCode::kStaleEpoch && chain != nullptr &&
      chain->version > pending->chain_version) {
    return Then::kNow;
  }
  Park(pending, clock_.Now());
  return Then::kLater;
}

void ObjectIo::Park(PendingPtr pending, TimePoint now) {
  meter_.Parked(pending->op.class_id, now);
  parked_.push_back(std::move(pending));
}

template <typename Predicate>
void ObjectIo::EraseParked(Predicate gone, TimePoint now) {
  std::erase_if(parked_, [&](const PendingPtr& pending) {
    if (!gone(pending)) return false;
    meter_.Unparked(pending->op.class_id, now);
    return true;
  });
}

void ObjectIo::SetMap(std::shared_ptr<const ClusterMap> map) {
  std::vector<Departure> departures;
  {
    std::lock_guard lock(mutex_);
    if (map_ != nullptr) {
      for (const auto& [id, entry] : map_->classes) {
        if (map->classes.contains(id)) continue;
        tokens_sent_.Forget(id);
        requests_sent_.Forget(id);
      }
    }
    map_ = std::move(map);
    chains_.SetMap(map_);
    cluster_hash_ = map_->ClusterHash();
    SetPartsLocked(clock_.Now());
    SetLimitsLocked(clock_.Now(), &departures);
  }
  SendAll(std::move(departures));
  Tick();
}

template <typename Predicate>
void ObjectIo::EraseFrom(ClassId id, Window& window, Predicate gone, TimePoint now) {
  size_t count = 0;
  for (auto it = window.queue.begin(); it != window.queue.end();) {
    const auto place = it++;
    if (!gone(*place)) continue;
    window.flows.Leave(place->get());
    window.waiting_bytes -= (*place)->op.cost();
    window.queue.erase(place);
    ++count;
  }
  if (count > 0) meter_.Dropped(id, count, now);
}

std::vector<ObjectIo::PendingPtr> ObjectIo::TakeExpiredLocked(TimePoint now) {
  std::vector<PendingPtr> expired;
  if (options_.timeout == Duration::max()) return expired;
  auto late = [&](const PendingPtr& pending) {
    if (now < pending->deadline || sender_.Reachable(pending->osd)) return false;
    expired.push_back(pending);
    EndNumberLocked(*pending);
    return true;
  };
  EraseParked(late, now);
  for (auto& [key, window] : windows_) EraseFrom(key.first, window, late, now);
  counters_.expired += expired.size();
  return expired;
}

void ObjectIo::Tick() {
  std::vector<PendingPtr> again;
  std::vector<PendingPtr> expired;
  {
    std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    room_.Forget(now);
    expired = TakeExpiredLocked(now);
    const auto goes = [&](const PendingPtr& pending) {
      again.push_back(pending);
      return true;
    };
    EraseParked(goes, now);
  }
  for (PendingPtr& pending : expired) {
    pending->op.done(Status(ErrorCode::kTimedOut, "osd." + std::to_string(pending->osd.value) +
                                                      " has been unreachable for too long"));
  }
  for (PendingPtr& pending : again) Route(std::move(pending));
  room_waits_.Tick();
}

template <typename Gone>
void ObjectIo::EndUnsent(Gone gone, const Status& status) {
  std::vector<PendingPtr> dropped;
  {
    std::lock_guard lock(mutex_);
    const auto take = [&](const PendingPtr& pending) {
      if (!gone(pending->op)) return false;
      dropped.push_back(pending);
      EndNumberLocked(*pending);
      return true;
    };
    const TimePoint now = clock_.Now();
    EraseParked(take, now);
    for (auto& [key, window] : windows_) EraseFrom(key.first, window, take, now);
  }
  for (const PendingPtr& pending : dropped) pending->op.done(status);
}

void ObjectIo::DropAbandoned() {
  EndUnsent(IsAbandoned, Status(ErrorCode::kCancelled, "its process was killed"));
  room_waits_.EndGone();
}

void ObjectIo::DropFenced() {
  EndUnsent(IsFenced, FencedError());
  room_waits_.EndGone();
}

void ObjectIo::Stop() {
  room_waits_.Stop();
  std::vector<PendingPtr> dropped;
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    const auto drop = [&](const PendingPtr& pending) {
      dropped.push_back(pending);
      return true;
    };
    EraseParked(drop, now);
    for (auto& [key, window] : windows_) {
      dropped.insert(dropped.end(), window.queue.begin(), window.queue.end());
      EraseFrom(
          key.first, window, [](const PendingPtr&) { return true; }, now);
    }
    for (const PendingPtr& pending : dropped) EndNumberLocked(*pending);
  }
  for (PendingPtr& pending : dropped) {
    pending->op.done(Status(ErrorCode::kCancelled, "the mount is going away"));
  }
}

std::map<ClassId, MountClassTimes> ObjectIo::Times() {
  std::lock_guard lock(mutex_);
  return meter_.Times(clock_.Now());
}

bool ObjectIo::Together(PoolId pool, ObjectId one, ObjectId other) const {
  std::lock_guard lock(mutex_);
  const auto first = chains_.Of(pool, one);
  const auto second = chains_.Of(pool, other);
  return first.has_value() && second.has_value() && first->chain->head() == second->chain->head();
}

size_t ObjectIo::OsdsOf(PoolId pool) const {
  std::lock_guard lock(mutex_);
  std::set<OsdId> osds;
  if (map_ == nullptr) return 0;
  const auto found = map_->pools.find(pool);
  if (found == map_->pools.end()) return 0;
  for (const Chain& chain : found->second.chains) {
    if (!chain.empty()) osds.insert(chain.head());
  }
  return osds.size();
}

uint64_t ObjectIo::InFlightBytes(ClassId class_id, OsdId osd) const {
  std::lock_guard lock(mutex_);
  auto it = windows_.find({class_id, osd});
  return it == windows_.end() ? 0 : it->second.flying_bytes;
}

std::map<ClassId, ObjectIo::ClassLoad> ObjectIo::Loads() const {
  std::map<ClassId, ClassLoad> loads;
  std::lock_guard lock(mutex_);
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

ObjectIo::Counters ObjectIo::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace weir::client
