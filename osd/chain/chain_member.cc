#include "osd/chain/chain_member.h"

#include "common/base/check.h"

namespace weir::osd {

using namespace replication;  // NOLINT: this file speaks the protocol's words

ChainMember::ChainMember(const Options& options, ChainHost& host, SlotStore& store,
                         Credits& credits)
    : options_(options),
      host_(host),
      store_(store),
      credits_(credits),
      changes_(options.changes_max) {
  for (const auto& [object, record] : store_.state().objects) {
    for (const Operation& operation : record.pending) {
      Pending& pending = pending_[operation.version];
      pending.object = object;
      pending.bytes = operation.bytes.size();
      pending.durable = true;
    }
  }
}

ChainMember::~ChainMember() {
  LeaveChain();
}

// Everything that belongs to the old chain goes; what is pending stays.
void ChainMember::LeaveChain() {
  const bool head = chain_.has_value() && position_ == std::optional<size_t>(0);
  for (auto& [version, pending] : pending_) {
    if (head) credits_.Give(options_.osd, 0, pending.bytes);
    if (pending.forwarded) {
      credits_.Give(chain_->members[*position_ + 1].osd, *position_ + 1, pending.bytes);
    }
    pending.above = pending.forwarded = false;
    pending.told = {};
  }
  lease_.Reset();
  sealed_out_.clear();
  link_.reset();
  sync_.reset();
  unsent_.clear();
  refused_.clear();
  sync_end_batch_.reset();
  resolved_below_ = {};
  sync_ended_ = false;
  items_taken_ = 0;
  joined_at_ = asked_at_ = listing_asked_ = {};
  last_forwarded_ = {};
  next_sequence_ = 1;
}

void ChainMember::Adopt(const Chain& chain, TimePoint now) {
  if (failed_ || (chain_.has_value() && chain.version <= chain_->version)) return;
  const bool served = Serving();
  LeaveChain();
  chain_ = chain;
  position_ = chain.PositionOf(options_.osd, options_.life);
  SendAwayClients();
  if (InPath()) EnterChain(served, now);
}

void ChainMember::EnterChain(bool served, TimePoint now) {
  if (Serving() && !served) changes_.Restart(store_.state().highest);
  std::vector<Version> versions;
  for (auto& [version, pending] : pending_) {
    versions.push_back(version);
    if (!IsTail()) unsent_.insert(version);
    if (!IsHead()) continue;
    credits_.Take(options_.osd, 0, pending.bytes);
    pending.above = true;
  }
  if (IsHead()) {
    skipped_.clear();  // nobody has them
    for (const Version version : versions) Proceed(version, now);
  } else {
    SendJoin(now);
  }
  if (Serving()) AskForGrants(now);
}

bool ChainMember::SuccessorSyncs() const {
  return InPath() && *position_ + 1 == chain_->serving() && !IsTail();
}

const ObjectRecord* ChainMember::Find(ObjectId object) const {
  const auto found = store_.state().objects.find(object);
  return found == store_.state().objects.end() ? nullptr : &found->second;
}

void ChainMember::Send(OsdId to, decltype(PeerMessage::body) body) {
  host_.Send(to, {.from = options_.osd,
                  .life = options_.life,
                  .slot = options_.slot,
                  .chain = chain_.has_value() ? chain_->version : 0,
                  .body = std::move(body)});
}

void ChainMember::SendUp(decltype(PeerMessage::body) body) {
  Send(chain_->members[*position_ - 1].osd, std::move(body));
}

void ChainMember::SendDown(decltype(PeerMessage::body) body) {
  Send(chain_->members[*position_ + 1].osd, std::move(body));
}

void ChainMember::Handle(const PeerMessage& message, TimePoint now) {
  if (failed_) return;
  if (const auto* stale = std::get_if<Stale>(&message.body)) {
    Adopt(stale->chain, now);
    return;
  }
  if (!chain_.has_value()) return;
  if (message.chain < chain_->version) Send(message.from, Stale{*chain_});
  if (message.chain != chain_->version || !InPath()) return;
  const auto sender = chain_->PositionOf(message.from, message.life);
  if (!sender.has_value()) return;
  const bool above = *sender + 1 == *position_;
  const bool below = *sender == *position_ + 1;
  std::visit(
      [&](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, RenewAsk>) {
          On(body, message, now);
        } else if constexpr (std::is_same_v<Body, RenewGrant>) {
          lease_.GrantedBy(message.from, body.asked_at);
          RetryReads(now);
        } else if constexpr (std::is_same_v<Body, Item> || std::is_same_v<Body, Durable>) {
          if (above) On(body, now);
        } else if constexpr (std::is_same_v<Body, Join>) {
          if (below) On(body, message.from, now);
        } else if constexpr (!std::is_same_v<Body, Stale>) {
          if (below) On(body, now);
        }
      },
      message.body);
}

void ChainMember::Handle(const LeaderMessage& message, TimePoint now) {
  if (failed_) return;
  if (const auto* news = std::get_if<News>(&message.body)) On(*news, message.term, now);
  if (const auto* seal = std::get_if<replication::Seal>(&message.body)) On(*seal, now);
  const auto* grant = std::get_if<LeaderGrant>(&message.body);
  if (grant == nullptr || !chain_.has_value()) return;
  if (grant->chain != chain_->version || grant->life != options_.life) return;
  lease_.GrantedByLeader(grant->asked_at);
  RetryReads(now);
}

// A seal of an older leader is void: etcd takes no change from that one any more.
void ChainMember::On(const News& news, uint64_t term, TimePoint now) {
  if (term > seal_.term) {
    seal_ = {term, 0};
    sealed_out_.clear();
  }
  Adopt(news.chain, now);
}

void ChainMember::On(const replication::Seal& seal, TimePoint now) {
  Adopt(seal.chain, now);
  if (seal.id < seal_ || !chain_.has_value() || seal.chain.version != chain_->version) return;
  seal_ = seal.id;
  sealed_out_ = seal.removed;
}

void ChainMember::On(const RenewAsk& ask, const PeerMessage& from, TimePoint) {
  if (!Serving() || !chain_->Serves(from.from, from.life)) return;
  if (sealed_out_.contains(from.from)) return;
  Send(from.from, RenewGrant{ask.asked_at});
}

void ChainMember::AskForGrants(TimePoint now) {
  asked_at_ = now;
  for (const Member& member : chain_->members) {
    if (member.state != MemberState::kServing || member.osd == options_.osd) continue;
    Send(member.osd, RenewAsk{now});
  }
  host_.AskLeaders({options_.slot, chain_->version, now});
}

void ChainMember::Tick(TimePoint now) {
  if (!InPath()) return;
  if (Serving() && now >= asked_at_ + kLease / 6) AskForGrants(now);
  if (!IsHead() && items_taken_ == 0 && now >= joined_at_ + options_.repeat) SendJoin(now);
  if (link_ != nullptr) {
    link_->Repeat(options_.repeat, now, [&](const Item& item) { SendDown(item); });
    ForwardUnsent(now);
    PumpSync(now);
    for (const auto& [version, pending] : pending_) {
      if (pending.forwarded && pending.durable && pending.above &&
          now >= pending.told + options_.repeat) {
        TellDurable(version, now);
      }
    }
  }
  RetryReads(now);
  ForgetTombstones();
}

void ChainMember::ForgetTombstones() {
  Batch batch;
  const SlotState& slot = store_.state();
  const Version resolved = ResolvedFromHereDown();
  for (const auto& [object, record] : slot.objects) {
    if (record.readable.exists || !record.pending.empty()) continue;
    if (record.readable.version > resolved) continue;
    const bool awaited = std::any_of(
        record.readable.ids.begin(), record.readable.ids.end(), [&](const auto& session) {
          const auto& [floor, done] = session.second;
          const uint64_t passed = slot.FloorOf(session.first);
          return floor > passed || (!done.empty() && done.rbegin()->first >= passed);
        });
    if (!awaited) batch.push_back(Forget{object});
  }
  if (!batch.empty()) Submit(std::move(batch));
}

void ChainMember::Fail() {
  failed_ = true;
  waiters_.clear();
  reads_.clear();
}

SlotReport ChainMember::Report() const {
  SlotReport report;
  if (!chain_.has_value()) return report;
  report.chain = chain_->version;
  report.synced = sync_end_batch_.has_value() && *sync_end_batch_ <= durable_batch_;
  return report;
}

}  // namespace weir::osd
