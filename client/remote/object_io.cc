#include "client/remote/object_io.h"

#include <set>
#include <string>
#include <utility>

namespace weir::client {
namespace {
constexpr uint32_t kChecksumRetries = 1;

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
      stamps_(options_.session, options_.ids_above),
      windows_(stamps_, meter_, options_.windows),
      room_waits_(clock, options_.ask_removals) {}

ObjectIo::~ObjectIo() = default;

void ObjectIo::Submit(ObjectOp op) {
  NewFiles* const files = options_.new_files;
  const InodeId inode = op.object.inode;
  if (op.write && files != nullptr) files->Changes(inode);
  if (op.write && files != nullptr && files->IsNew(inode)) {
    files->AwaitDurable(
        inode, [this, op = std::make_shared<ObjectOp>(std::move(op))](const Status& status) {
          if (!status.ok()) return op->done(status);
          Send(std::move(*op));
        });
    return;
  }
  Send(std::move(op));
}

void ObjectIo::Send(ObjectOp op) {
  auto pending = std::make_shared<PendingOp>();
  pending->op = std::move(op);
  pending->asked = clock_.Now();
  if (options_.timeout != Duration::max()) pending->deadline = pending->asked + options_.timeout;
  Route(std::move(pending));
}

void ObjectIo::Route(PendingOpPtr pending) {
  ObjectWindows::Departures departures;
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
      stamps_.End(pending.get());
    } else {
      windows_.Join(std::move(pending), now, &departures);
    }
  }
  // NOLINTNEXTLINE(bugprone-use-after-move): queued only without an error
  if (!error.ok()) return pending->op.done(std::move(error));
  Deliver(&departures);
}

TimePoint ObjectIo::SendDue() {
  ObjectWindows::Departures departures;
  TimePoint next = TimePoint::Max();
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return next;
    next = windows_.TakeDue(clock_.Now(), &departures);
  }
  Deliver(&departures);
  return next;
}

void ObjectIo::SetLimitParts(std::map<ClassId, double> parts, uint64_t order) {
  ObjectWindows::Departures departures;
  {
    std::lock_guard lock(mutex_);
    windows_.SetLimitParts(std::move(parts), order, clock_.Now(), &departures);
  }
  Deliver(&departures);
}

std::map<ClassId, LimitShare::Counts> ObjectIo::LimitCounts() {
  std::lock_guard lock(mutex_);
  return windows_.LimitCounts(clock_.Now());
}

void ObjectIo::Deliver(ObjectWindows::Departures* departures) {
  for (const ObjectWindows::Departure& departure : departures->requests) {
    sender_.Send(departure.pending->op, departure.stamp,
                 [this, pending = departure.pending](ObjectAnswer answer) {
                   OnReply(pending, std::move(answer));
                 });
  }
  for (ObjectWindows::Answer& answer : departures->answers) {
    answer.pending->op.done(std::move(answer.result));
  }
}

void ObjectIo::OnReply(const PendingOpPtr& pending, ObjectAnswer answer) {
  Result<ObjectOutcome>& result = answer.result;
  if (!ReadIsIntact(pending->op, result)) {
    result = Status(ErrorCode::kBadMessage, "an OSD answered more than was asked for");
  }
  ObjectWindows::Departures departures;
  Then then = Then::kEnd;
  bool held = false;
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    ObjectWindows::Window& window = windows_.Back(pending.get(), result, now);
    if (result.ok() && result->free_bytes.has_value()) {
      room_.Told(pending->osd, pending->op.tier, *result->free_bytes, now);
    }
    if (!result.ok()) then = AfterLocked(pending, &answer);
    if (then == Then::kEnd) stamps_.End(pending.get());
    // What it did the first time does not count as grown any more.
    if (result.ok() && pending->again) result->grown_bytes.reset();
    if (!stopped_) {
      held = result.ok() && windows_.HoldsBack(pending, &result, now);
      windows_.TakeDepartures(window, now, &departures);
    }
  }
  Deliver(&departures);
  if (then == Then::kNow) Route(pending);
  if (then != Then::kEnd || held) return;
  if (result.code() != ErrorCode::kNoSpace) return pending->op.done(std::move(result));
  pending->room.gone = [&op = pending->op] { return IsAbandoned(op) || IsFenced(op); };
  room_waits_.Await(&pending->room, [this, pending, result = std::move(result)](bool goes_again) {
    // Of who is gone that says why.
    if (goes_again || pending->room.gone()) return Route(pending);
    pending->op.done(result);
  });
}

auto ObjectIo::AfterLocked(const PendingOpPtr& pending, ObjectAnswer* answer) -> Then {
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

void ObjectIo::Park(PendingOpPtr pending, TimePoint now) {
  meter_.Parked(pending->op.class_id, now);
  parked_.push_back(std::move(pending));
}

template <typename Predicate>
void ObjectIo::EraseParked(Predicate gone, TimePoint now) {
  std::erase_if(parked_, [&](const PendingOpPtr& pending) {
    if (!gone(pending)) return false;
    meter_.Unparked(pending->op.class_id, now);
    return true;
  });
}

void ObjectIo::SetMap(std::shared_ptr<const ClusterMap> map) {
  ObjectWindows::Departures departures;
  {
    std::lock_guard lock(mutex_);
    map_ = std::move(map);
    chains_.SetMap(map_);
    stamps_.SetMap(map_);
    windows_.SetMap(map_, clock_.Now(), &departures);
  }
  Deliver(&departures);
  Tick();
}

template <typename Predicate>
void ObjectIo::TakeUnsentLocked(Predicate gone, TimePoint now, std::vector<PendingOpPtr>* out) {
  const auto take = [&](const PendingOpPtr& pending) {
    if (!gone(*pending)) return false;
    out->push_back(pending);
    stamps_.End(pending.get());
    return true;
  };
  EraseParked(take, now);
  windows_.Erase(take, now);
}

std::vector<PendingOpPtr> ObjectIo::TakeExpiredLocked(TimePoint now) {
  std::vector<PendingOpPtr> expired;
  if (options_.timeout == Duration::max()) return expired;
  const auto late = [&](const PendingOp& pending) {
    return now >= pending.deadline && !sender_.Reachable(pending.osd);
  };
  TakeUnsentLocked(late, now, &expired);
  counters_.expired += expired.size();
  return expired;
}

void ObjectIo::Tick() {
  std::vector<PendingOpPtr> again;
  std::vector<PendingOpPtr> expired;
  {
    std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    room_.Forget(now);
    expired = TakeExpiredLocked(now);
    const auto goes = [&](const PendingOpPtr& pending) {
      again.push_back(pending);
      return true;
    };
    EraseParked(goes, now);
  }
  for (PendingOpPtr& pending : expired) {
    pending->op.done(Status(ErrorCode::kTimedOut, "osd." + std::to_string(pending->osd.value) +
                                                      " has been unreachable for too long"));
  }
  for (PendingOpPtr& pending : again) Route(std::move(pending));
  room_waits_.Tick();
}

template <typename Gone>
void ObjectIo::EndUnsent(Gone gone, const Status& status) {
  std::vector<PendingOpPtr> dropped;
  {
    std::lock_guard lock(mutex_);
    const auto of = [&gone](const PendingOp& pending) { return gone(pending.op); };
    TakeUnsentLocked(of, clock_.Now(), &dropped);
  }
  for (const PendingOpPtr& pending : dropped) pending->op.done(status);
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
  std::vector<PendingOpPtr> dropped;
  ObjectWindows::Departures held;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    const auto all = [](const PendingOp&) { return true; };
    TakeUnsentLocked(all, clock_.Now(), &dropped);
    windows_.TakeHeld(&held);
  }
  Deliver(&held);
  for (const PendingOpPtr& pending : dropped) {
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
  return windows_.InFlightBytes(class_id, osd);
}

std::map<ClassId, ObjectIo::ClassLoad> ObjectIo::Loads() const {
  std::lock_guard lock(mutex_);
  return windows_.Loads();
}

ObjectIo::Counters ObjectIo::counters() const {
  std::lock_guard lock(mutex_);
  Counters counters = counters_;
  counters.sent = windows_.sent();
  return counters;
}

}  // namespace weir::client
