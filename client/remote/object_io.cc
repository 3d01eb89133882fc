#include "client/remote/object_io.h"

#include <algorithm>
#include <string>

namespace weir::client {
namespace {
constexpr uint32_t kChecksumRetries = 1;

bool ReadIsIntact(const ObjectOp& op, const Result<ObjectOutcome>& result) {
  return op.write || !result.ok() || result->payload.size() <= op.length;
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
}  // namespace

ObjectIo::ObjectIo(Clock& clock, ObjectSender& sender, Options options)
    : clock_(clock), sender_(sender), options_(options) {}

ObjectIo::~ObjectIo() = default;

void ObjectIo::Submit(ObjectOp op) {
  auto pending = std::make_shared<Pending>();
  pending->op = std::move(op);
  if (options_.timeout != Duration::max()) pending->deadline = clock_.Now() + options_.timeout;
  Route(std::move(pending));
}

void ObjectIo::Route(PendingPtr pending) {
  std::vector<Departure> departures;
  Status error;
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    const Chain* chain =
        map_ == nullptr ? nullptr : map_->ChainOf(pending->op.pool, pending->op.object);
    if (stopped_) {
      error = Status(ErrorCode::kCancelled, "the mount is going away");
    } else if (pending->op.abandoned != nullptr && *pending->op.abandoned) {
      // Late, it would overwrite what others have written since.
      error = Status(ErrorCode::kCancelled, "its process was killed");
    } else if (IsFenced(pending->op)) {
      error = FencedError();
    } else if (map_ != nullptr && !map_->pools.contains(pending->op.pool)) {
      error = Status(ErrorCode::kIo, "object " + std::to_string(pending->op.object.inode.value) +
                                         " lies in a pool that does not exist any more");
    } else if (chain == nullptr || chain->empty()) {
      parked_.push_back(std::move(pending));  // a pool may still get its first OSD
      return;
    } else {
      pending->osd = chain->front();
      const Key key{pending->op.class_id, pending->osd};
      Window& window = windows_[key];
      if (window.limit_bytes == 0) window.limit_bytes = options_.first_window_bytes;
      window.queue.push_back(std::move(pending));
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
  while (!window.queue.empty()) {
    const uint64_t bytes = window.queue.front()->op.length;
    const bool fits = window.flying_bytes + bytes <= window.limit_bytes &&
                      window.flying_requests < options_.window_requests;
    if (window.flying_requests > 0 && !fits) return;
    PendingPtr pending = std::move(window.queue.front());
    window.queue.pop_front();
    window.flying_bytes += bytes;
    ++window.flying_requests;
    ++counters_.sent;
    meter_.Sent(key.first, now);
    if (pending->elsewhere < 0) {
      pending->sent = now;
      pending->elsewhere = tracker_.OnSend(key.first, key.second, TokensOf(bytes));
    }
    const ObjectSender::Stamp stamp{key.second, pending->elsewhere, map_->epoch.value,
                                    cluster_hash_};
    out->push_back({std::move(pending), stamp});
  }
}

void ObjectIo::SendAll(std::vector<Departure> departures) {
  for (Departure& departure : departures) {
    const Key key{departure.pending->op.class_id, departure.stamp.osd};
    const ObjectOp& op = departure.pending->op;
    sender_.Send(op, departure.stamp,
                 [this, key, pending = departure.pending](Result<ObjectOutcome> result) {
                   OnReply(pending, key, std::move(result));
                 });
  }
}

void ObjectIo::OnReply(const PendingPtr& pending, const Key& key, Result<ObjectOutcome> result) {
  if (!ReadIsIntact(pending->op, result)) {
    result = Status(ErrorCode::kBadMessage, "an OSD answered more than was asked for");
  }
  std::vector<Departure> departures;
  bool again = false;
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    Window& window = windows_[key];
    window.flying_bytes -= pending->op.length;
    --window.flying_requests;
    meter_.Back(key.first, now);
    if (result.ok()) {
      meter_.Answered(key.first, pending->op.length, now - pending->sent, result->server_time);
    }
    if (result.ok() && result->window_bytes != 0) window.limit_bytes = result->window_bytes;
    if (result.ok()) {
      window.answered_bytes += pending->op.length;
      ++window.answered_requests;
    }
    again = !result.ok() && ParkLocked(pending, result);
    if (!stopped_) TakeDepartures(key, window, now, &departures);
  }
  SendAll(std::move(departures));
  if (!again) pending->op.done(std::move(result));
}

bool ObjectIo::ParkLocked(const PendingPtr& pending, const Result<ObjectOutcome>& result) {
  if (stopped_) return false;
  const ErrorCode code = result.code();
  // A checksum that is wrong on arrival says nothing of the disk: once more.
  const bool checksum = code == ErrorCode::kCorrupt || code == ErrorCode::kBadMessage;
  if (checksum) {
    ++counters_.checksum_errors;
    if (pending->checksum_retries++ >= kChecksumRetries) return false;
  }
  // Out of time, but the OSD is alive: it is only slow, as it may be for a throttled class.
  const bool slow = code == ErrorCode::kTimedOut && sender_.Reachable(pending->osd);
  if (!checksum && !slow && !Passing(code)) return false;
  if (!checksum && !slow && clock_.Now() >= pending->deadline) return false;
  ++counters_.retried;
  parked_.push_back(pending);
  return true;
}

void ObjectIo::SetMap(std::shared_ptr<const ClusterMap> map) {
  {
    std::lock_guard lock(mutex_);
    if (map_ != nullptr) {
      for (const auto& [id, entry] : map_->classes) {
        if (!map->classes.contains(id)) tracker_.Forget(id);
      }
    }
    map_ = std::move(map);
    cluster_hash_ = map_->ClusterHash();
  }
  Tick();
}

template <typename Predicate>
void ObjectIo::EraseFrom(ClassId id, Window& window, Predicate gone, TimePoint now) {
  const size_t count = std::erase_if(window.queue, gone);
  if (count > 0) meter_.Dropped(id, count, now);
}

std::vector<ObjectIo::PendingPtr> ObjectIo::TakeExpiredLocked(TimePoint now) {
  std::vector<PendingPtr> expired;
  if (options_.timeout == Duration::max()) return expired;
  auto late = [&](const PendingPtr& pending) {
    if (now < pending->deadline || sender_.Reachable(pending->osd)) return false;
    expired.push_back(pending);
    return true;
  };
  std::erase_if(parked_, late);
  for (auto& [key, window] : windows_) EraseFrom(key.first, window, late, now);
  counters_.expired += expired.size();
  return expired;
}

void ObjectIo::Tick() {
  std::vector<PendingPtr> again;
  std::vector<PendingPtr> expired;
  {
    std::lock_guard lock(mutex_);
    expired = TakeExpiredLocked(clock_.Now());
    again.swap(parked_);
  }
  for (PendingPtr& pending : expired) {
    pending->op.done(Status(ErrorCode::kTimedOut, "osd." + std::to_string(pending->osd.value) +
                                                      " has been unreachable for too long"));
  }
  for (PendingPtr& pending : again) Route(std::move(pending));
}

template <typename Gone>
void ObjectIo::EndUnsent(Gone gone, const Status& status) {
  std::vector<PendingPtr> dropped;
  {
    std::lock_guard lock(mutex_);
    const auto take = [&](const PendingPtr& pending) {
      if (!gone(pending->op)) return false;
      dropped.push_back(pending);
      return true;
    };
    std::erase_if(parked_, take);
    const TimePoint now = clock_.Now();
    for (auto& [key, window] : windows_) EraseFrom(key.first, window, take, now);
  }
  for (const PendingPtr& pending : dropped) pending->op.done(status);
}

void ObjectIo::DropAbandoned() {
  EndUnsent([](const ObjectOp& op) { return op.abandoned != nullptr && *op.abandoned; },
            Status(ErrorCode::kCancelled, "its process was killed"));
}

void ObjectIo::DropFenced() {
  EndUnsent(IsFenced, FencedError());
}

void ObjectIo::Stop() {
  std::vector<PendingPtr> dropped;
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(parked_);
    for (auto& [key, window] : windows_) {
      dropped.insert(dropped.end(), window.queue.begin(), window.queue.end());
      EraseFrom(
          key.first, window, [](const PendingPtr&) { return true; }, now);
    }
  }
  for (PendingPtr& pending : dropped) {
    pending->op.done(Status(ErrorCode::kCancelled, "the mount is going away"));
  }
}

std::map<ClassId, MountClassTimes> ObjectIo::Times() {
  std::lock_guard lock(mutex_);
  return meter_.Times(clock_.Now());
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
