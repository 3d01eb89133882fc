// The life of an operation on a member: staged, forwarded, durable here and above, published from
// the tail up; or dropped.
#include "common/base/check.h"
#include "osd/chain/chain_member.h"

namespace weir::osd {

using namespace replication;  // NOLINT: this file speaks the protocol's words

void ChainMember::Submit(Batch batch) {
  last_batch_ = store_.Submit(std::move(batch));
}

void ChainMember::Take(const Operation& operation) {
  changes_.Add(operation.object, operation.version);
  Submit({osd::Stage{operation}});
  skipped_.erase(operation.version);
  Pending& pending = pending_[operation.version];
  pending.object = operation.object;
  pending.bytes = operation.bytes.size();
  pending.batch = last_batch_;
  if (!IsTail()) unsent_.insert(operation.version);
}

const Operation& ChainMember::OperationOf(Version version) const {
  const ObjectRecord* record = Find(pending_.at(version).object);
  const auto found = std::find_if(record->pending.begin(), record->pending.end(),
                                  [&](const Operation& o) { return o.version == version; });
  WEIR_CHECK(found != record->pending.end(), "a pending operation is in its object's record");
  return *found;
}

// In the slot's order, as far as credit reaches. What the successor does not have comes first.
void ChainMember::ForwardUnsent(TimePoint now) {
  while (link_ != nullptr && !unsent_.empty()) {
    const Version version = *unsent_.begin();
    Pending& pending = pending_.at(version);
    const OsdId next = chain_->members[*position_ + 1].osd;
    if (version.chain < chain_->version) {  // its place in other queues does not follow positions
      credits_.Take(next, *position_ + 1, pending.bytes);
    } else if (!credits_.TryTake(next, *position_ + 1, pending.bytes)) {
      return;
    }
    unsent_.erase(unsent_.begin());
    pending.forwarded = true;
    if (sync_ != nullptr && !sync_->IsEqual(pending.object)) {
      Push(Install{pending.object, Find(pending.object)->readable}, now);
      sync_->Sent(pending.object);
    }
    Push(Forward{OperationOf(version)}, now);
    Proceed(version, now);
  }
}

void ChainMember::BatchDurable(uint64_t batch, TimePoint now) {
  if (failed_) return;
  durable_batch_ = std::max(durable_batch_, batch);
  std::vector<Version> became;
  for (auto& [version, pending] : pending_) {
    if (pending.durable || pending.batch > batch) continue;
    pending.durable = true;
    became.push_back(version);
  }
  for (const Version version : became) {
    if (InPath()) Proceed(version, now);
  }
}

// The tail decides; everybody else tells the next that all above it have it.
void ChainMember::Proceed(Version version, TimePoint now) {
  const auto found = pending_.find(version);
  if (found == pending_.end() || !found->second.durable || !found->second.above) return;
  const ObjectId object = found->second.object;
  if (!IsTail()) {
    if (found->second.forwarded) TellDurable(version, now);
    return;
  }
  PublishUpTo(object, version, now);
  if (!IsHead()) SendUp(Ack{object, version});
}

void ChainMember::TellDurable(Version version, TimePoint now) {
  Pending& pending = pending_.at(version);
  pending.told = now;
  SendDown(Durable{pending.object, version});
}

void ChainMember::On(const Durable& durable, TimePoint now) {
  const auto found = pending_.find(durable.version);
  if (found != pending_.end()) {
    found->second.above = true;
    Proceed(durable.version, now);
    return;
  }
  if (durable.version > last_forwarded_) return;  // it overtook the operation; told again
  const auto refused = refused_.find(durable.object);
  if (refused != refused_.end() && durable.version >= refused->second.version) {
    SendUp(refused->second);
  } else if (!skipped_.contains(durable.version)) {
    SendUp(Ack{durable.object, durable.version});
  }
}

void ChainMember::On(const Ack& ack, TimePoint now) {
  const auto found = pending_.find(ack.version);
  if (found == pending_.end() || !found->second.durable || !found->second.above) return;
  PublishUpTo(ack.object, ack.version, now);
  if (!IsHead()) SendUp(ack);
}

void ChainMember::On(const Refused& refused, TimePoint now) {
  if (!pending_.contains(refused.version)) return;
  if (IsHead()) {
    Abort(refused, now);
  } else {
    SendUp(refused);
  }
}

void ChainMember::PublishUpTo(ObjectId object, Version version, TimePoint now) {
  const ObjectRecord* record = Find(object);
  if (record == nullptr) return;
  std::vector<std::pair<Version, OpId>> published;
  for (const Operation& operation : record->pending) {
    if (operation.version <= version) published.emplace_back(operation.version, operation.id);
  }
  for (const auto& [each, id] : published) Release(pending_.find(each));
  Batch batch{Publish{object, version}};
  if (Serving()) batch.push_back(SetBase{Resolved()});
  Submit(std::move(batch));
  for (const auto& [each, id] : published) AnswerWaiter(id, object);
  RetryReads(now);
  ForwardUnsent(now);
}

void ChainMember::DropFrom(ObjectId object, Version from, TimePoint now) {
  if (link_ != nullptr) Push(Drop{object, from}, now);
  const ObjectRecord* record = Find(object);
  if (record == nullptr) return;
  std::vector<Version> dropped;
  for (const Operation& operation : record->pending) {
    if (operation.version >= from) dropped.push_back(operation.version);
  }
  for (const Version version : dropped) Release(pending_.find(version));
  Batch batch{Drop{object, from}};
  if (Serving()) batch.push_back(SetBase{Resolved()});
  Submit(std::move(batch));
  RetryReads(now);
}

void ChainMember::Release(std::map<Version, Pending>::iterator which) {
  WEIR_CHECK(which != pending_.end(), "a pending operation is in the table");
  const Pending& pending = which->second;
  if (IsHead()) credits_.Give(options_.osd, 0, pending.bytes);
  if (pending.forwarded) {
    credits_.Give(chain_->members[*position_ + 1].osd, *position_ + 1, pending.bytes);
  }
  unsent_.erase(which->first);
  pending_.erase(which);
}

// Up to here nothing is open, and a serving member had it all.
Version ChainMember::Resolved() const {
  Version resolved = store_.state().highest;
  if (!pending_.empty()) resolved = std::min(resolved, pending_.begin()->first.Before());
  if (!skipped_.empty()) resolved = std::min(resolved, skipped_.begin()->first.Before());
  return resolved;
}

// A syncing member cannot say it of itself.
Version ChainMember::ResolvedFromHereDown() const {
  if (!Serving()) return {};
  return IsTail() ? Resolved() : std::min(Resolved(), resolved_below_);
}

}  // namespace weir::osd
