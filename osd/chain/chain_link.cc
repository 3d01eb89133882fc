// The link from predecessor to successor, and how a member becomes equal to its predecessor.
#include "osd/chain/chain_member.h"

namespace weir::osd {

using namespace replication;  // NOLINT: this file speaks the protocol's words

void ChainMember::SendJoin(TimePoint now) {
  joined_at_ = now;
  Join join;
  for (const auto& [version, pending] : pending_) join.pending.push_back({pending.object, version});
  for (const auto& [version, object] : skipped_) join.pending.push_back({object, version});
  if (!Serving()) {
    join.base = store_.state().base;
    for (const auto& [object, record] : store_.state().objects) {
      if (Newest(&record).version > join.base) join.newer.push_back(object);
    }
  }
  SendUp(std::move(join));
}

void ChainMember::On(const Join& join, OsdId, TimePoint now) {
  if (link_ != nullptr) return;                // a late copy
  if (!IsHead() && items_taken_ == 0) return;  // what is pending here is not certain yet
  link_ = std::make_unique<ItemStream>();
  if (SuccessorSyncs()) {
    StartSync(join, now);
  } else {
    Verdicts verdicts;
    for (const ObjectVersion& pending : join.pending) {
      verdicts.of.push_back({pending, VerdictOn(pending)});
    }
    Push(std::move(verdicts), now);
  }
  for (const auto& [version, object] : skipped_) Push(Skipped{object, version}, now);
  ForwardUnsent(now);
  PumpSync(now);
}

Verdict ChainMember::VerdictOn(const ObjectVersion& theirs) const {
  const auto& [object, version] = theirs;
  if (pending_.contains(version) || skipped_.contains(version)) return Verdict::kKeep;
  const ObjectRecord* record = Find(object);
  const bool readable = record != nullptr && record->readable.version >= version;
  return readable ? Verdict::kReadable : Verdict::kDrop;
}

void ChainMember::StartSync(const Join& join, TimePoint now) {
  Push(Floors{store_.state().floors}, now);
  auto changed = changes_.Since(join.base);
  if (changed.has_value()) {
    changed->insert(join.newer.begin(), join.newer.end());
    sync_ = std::make_unique<SyncSource>(std::move(*changed));
  } else {
    sync_ = std::make_unique<SyncSource>();
  }
}

void ChainMember::PumpSync(TimePoint now) {
  if (sync_ == nullptr || sync_ended_) return;
  while (link_->unanswered() < options_.installs_max) {
    const auto object = sync_->Next();
    if (!object.has_value()) break;
    const ObjectRecord* record = Find(*object);
    Install install{*object, std::nullopt};
    if (record != nullptr && !record->readable.version.none()) install.state = record->readable;
    Push(std::move(install), now);
    sync_->Sent(*object);
  }
  if (sync_->WantsListing() && now >= listing_asked_ + options_.repeat) {
    listing_asked_ = now;
    Push(ListNext{sync_->cursor()}, now);
  }
  if (!sync_->done() || !unsent_.empty()) return;
  sync_ended_ = true;
  Push(SyncEnd{store_.state().highest}, now);
}

void ChainMember::Push(ItemBody body, TimePoint now) {
  link_->Push(std::move(body), now, [&](const Item& item) { SendDown(item); });
}

void ChainMember::On(const ItemAck& ack, TimePoint now) {
  if (link_ == nullptr) return;
  link_->Answered(ack.number);
  resolved_below_ = std::max(resolved_below_, ack.resolved);
  PumpSync(now);
}

void ChainMember::On(const Listing& listing, TimePoint now) {
  if (sync_ == nullptr || !sync_->WantsListing() || listing.after != sync_->cursor()) return;
  sync_->Compare(listing, store_.state());
  listing_asked_ = {};
  PumpSync(now);
}

void ChainMember::On(const Item& item, TimePoint now) {
  if (item.number == items_taken_ + 1 && !MustWaitForRoom(item)) {
    items_taken_ = item.number;
    std::visit([&](const auto& body) { OnItem(body, now); }, item.body);
  }
  if (!failed_) SendUp(ItemAck{items_taken_, ResolvedFromHereDown()});
}

// An operation of an older chain may have been committed there, by members that have left. Who was
// not in that path must not refuse it.
bool ChainMember::MustWaitForRoom(const Item& item) const {
  const auto* forward = std::get_if<Forward>(&item.body);
  if (forward == nullptr || Serving()) return false;
  const Operation& operation = forward->operation;
  return operation.version.chain < chain_->version && operation.kind == OpKind::kWrite &&
         !store_.HasRoom(operation);
}

void ChainMember::OnItem(const Verdicts& verdicts, TimePoint now) {
  for (const auto& [what, verdict] : verdicts.of) {
    if (verdict == Verdict::kDrop) ForgetSkipped(what.first, what.second);
    if (!pending_.contains(what.second)) continue;
    if (verdict == Verdict::kReadable) PublishUpTo(what.first, what.second, now);
    if (verdict == Verdict::kDrop) DropFrom(what.first, what.second, now);
  }
}

void ChainMember::OnItem(const Floors& floors, TimePoint) {
  Submit({RaiseFloors{floors}});
}

// A serving member has had everything below its highest version; what is not pending of it is over.
bool ChainMember::Has(const Operation& operation) const {
  if (pending_.contains(operation.version)) return true;
  if (skipped_.contains(operation.version)) return false;
  if (Serving()) return operation.version <= store_.state().highest;
  const ObjectRecord* record = Find(operation.object);
  return record != nullptr && record->readable.version >= operation.version;
}

void ChainMember::OnItem(const Forward& forward, TimePoint now) {
  const Operation& operation = forward.operation;
  last_forwarded_ = operation.version;
  if (Has(operation)) return;
  if (refused_.contains(operation.object)) {
    Skip(operation.object, operation.version, now);
    return;
  }
  if (operation.previous != Newest(Find(operation.object)).Previous()) {
    diverged_ = "an operation does not fit the object it is for";
    Fail();
    return;
  }
  const bool may_refuse = Serving() || operation.version.chain == chain_->version;
  if (operation.kind == OpKind::kWrite && may_refuse && !store_.HasRoom(operation)) {
    Skip(operation.object, operation.version, now);
    refused_[operation.object] = {operation.object, operation.version, ErrorCode::kNoSpace};
    SendUp(refused_[operation.object]);
    return;
  }
  Take(operation);
  ForwardUnsent(now);
}

void ChainMember::OnItem(const Install& install, TimePoint) {
  const ObjectRecord* record = Find(install.object);
  if (record != nullptr) {
    std::vector<Version> gone;
    for (const Operation& operation : record->pending) gone.push_back(operation.version);
    for (const Version version : gone) Release(pending_.find(version));
  }
  ForgetSkipped(install.object, {});
  Submit({install});
}

void ChainMember::OnItem(const Drop& drop, TimePoint now) {
  const auto refused = refused_.find(drop.object);
  if (refused != refused_.end() && refused->second.version >= drop.from) refused_.erase(refused);
  ForgetSkipped(drop.object, drop.from);
  DropFrom(drop.object, drop.from, now);
}

void ChainMember::OnItem(const Skipped& skipped, TimePoint now) {
  if (!pending_.contains(skipped.version)) Skip(skipped.object, skipped.version, now);
}

void ChainMember::Skip(ObjectId object, Version version, TimePoint now) {
  skipped_[version] = object;
  if (link_ != nullptr) Push(Skipped{object, version}, now);
}

void ChainMember::ForgetSkipped(ObjectId object, Version from) {
  std::erase_if(skipped_, [&](const auto& skipped) {
    return skipped.second == object && skipped.first >= from;
  });
}

void ChainMember::OnItem(const ListNext& list, TimePoint) {
  Listing listing;
  listing.after = list.after;
  const auto& objects = store_.state().objects;
  auto next = list.after.has_value() ? objects.upper_bound(*list.after) : objects.begin();
  for (; next != objects.end() && listing.objects.size() < options_.listing_max; ++next) {
    listing.objects.push_back({next->first, Newest(&next->second).version});
  }
  listing.last = next == objects.end();
  SendUp(std::move(listing));
}

void ChainMember::OnItem(const SyncEnd& end, TimePoint) {
  Submit({SetHighest{end.highest}});
  sync_end_batch_ = last_batch_;
}

}  // namespace weir::osd
