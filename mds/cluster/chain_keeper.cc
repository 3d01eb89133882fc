#include "mds/cluster/chain_keeper.h"

#include "common/base/check.h"

namespace weir::mds {

using namespace replication;  // NOLINT: this file speaks the protocol's words

namespace {

// Those who go on serving; a member that came back in a new life only where there is no other.
std::vector<Member> PlanServing(const Chain& now,
                                const std::function<MemberHealth(OsdId)>& health) {
  std::vector<Member> serving;
  for (const Member& member : now.members) {
    if (member.state != MemberState::kServing) continue;
    const MemberHealth is = health(member.osd);
    if (is.unknown || (is.alive && !is.failed && is.life == member.life)) serving.push_back(member);
  }
  if (!serving.empty()) return serving;
  for (const Member& member : now.members) {
    const MemberHealth is = health(member.osd);
    if (member.state != MemberState::kServing || !is.alive || is.failed) continue;
    return {{member.osd, is.life, MemberState::kServing}};
  }
  return {};
}

bool Contains(const std::vector<Member>& members, OsdId osd) {
  return std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.osd == osd; });
}

}  // namespace

std::optional<Chain> PlanChain(const Chain& now, const std::function<MemberHealth(OsdId)>& health) {
  Chain next = now;
  next.members = PlanServing(now, health);
  if (next.members.empty()) return std::nullopt;
  const bool nobody_left =
      std::equal(next.members.begin(), next.members.end(), now.members.begin(),
                 now.members.begin() + static_cast<std::ptrdiff_t>(now.serving()));
  std::optional<Member> syncing;
  std::vector<Member> offline;
  for (const Member& member : now.members) {
    if (Contains(next.members, member.osd)) continue;
    const MemberHealth is = health(member.osd);
    const bool same = is.unknown || (is.alive && !is.failed && is.life == member.life);
    if (member.state != MemberState::kSyncing || !same) {
      offline.push_back({member.osd, member.life, MemberState::kOffline});
    } else if (is.synced && nobody_left) {
      next.members.push_back({member.osd, member.life, MemberState::kServing});
    } else {
      syncing = member;
    }
  }
  for (auto member = offline.begin(); !syncing.has_value() && member != offline.end(); ++member) {
    const MemberHealth is = health(member->osd);
    if (!is.alive || is.failed || is.unknown) continue;
    syncing = {member->osd, is.life, MemberState::kSyncing};
    offline.erase(member);
    break;
  }
  if (syncing.has_value()) next.members.push_back(*syncing);
  next.members.insert(next.members.end(), offline.begin(), offline.end());
  if (next.members == now.members) return std::nullopt;
  ++next.version;
  return next;
}

void ChainKeeper::Lead(uint64_t term, std::vector<Chain> chains, TimePoint now) {
  WEIR_CHECK(term > term_, "a term is led once");
  leading_ = true;
  term_ = term;
  led_since_ = now;
  seals_ = 0;
  chains_.clear();
  changes_.clear();
  osds_.clear();
  for (Chain& chain : chains) {
    Tell(chain);
    const uint32_t slot = chain.slot;
    chains_[slot] = std::move(chain);
  }
}

void ChainKeeper::Tell(const Chain& chain) {
  for (const Member& member : chain.members) {
    host_.Send(member.osd, {term_, chain.slot, News{chain}});
  }
}

MemberHealth ChainKeeper::HealthOf(const Chain& chain, OsdId osd, TimePoint now) const {
  MemberHealth health;
  const auto found = osds_.find(osd);
  if (found == osds_.end()) {
    health.unknown = now < led_since_ + options_.silence;
    return health;
  }
  const Osd& known = found->second;
  health.alive = now < known.heard + options_.silence;
  health.life = known.life;
  health.failed = known.failed;
  const auto report = known.slots.find(chain.slot);
  health.synced =
      report != known.slots.end() && report->second.chain == chain.version && report->second.synced;
  return health;
}

void ChainKeeper::Handle(const MemberMessage& message, TimePoint now) {
  if (!leading_) return;
  std::visit([&](const auto& body) { On(body, message.from, message.life, now); }, message.body);
}

void ChainKeeper::On(const Alive& alive, OsdId from, Life life, TimePoint now) {
  Osd& osd = osds_[from];
  if (life < osd.life) return;  // late words of a former life
  osd = {life, alive.failed, now, alive.slots};
  for (const auto& [slot, chain] : chains_) {
    const auto report = alive.slots.find(slot);
    if (report == alive.slots.end() || report->second.chain >= chain.version) continue;
    host_.Send(from, {term_, slot, News{chain}});
  }
}

void ChainKeeper::On(const Sealed& sealed, OsdId from, Life life, TimePoint now) {
  const auto found = changes_.find(sealed.slot);
  if (found == changes_.end() || found->second.seal != sealed.id) return;
  Change& change = found->second;
  const auto waited = change.unsealed.find(from);
  if (waited == change.unsealed.end() || waited->second != life) return;
  change.unsealed.erase(waited);
  if (change.unsealed.empty()) change.sealed_at = now;
}

void ChainKeeper::On(const LeaderAsk& ask, OsdId from, Life life, TimePoint now) {
  const auto chain = chains_.find(ask.slot);
  if (now >= authority_until_ || chain == chains_.end()) return;
  if (chain->second.version != ask.chain || !chain->second.Serves(from, life)) return;
  const auto change = changes_.find(ask.slot);
  if (change != changes_.end() && change->second.removed.contains(from)) return;
  host_.Send(from, {term_, ask.slot, LeaderGrant{ask.chain, life, ask.asked_at}});
}

void ChainKeeper::Tick(TimePoint now) {
  if (!leading_) return;
  std::vector<uint32_t> slots;
  for (const auto& [slot, chain] : chains_) slots.push_back(slot);
  for (const uint32_t slot : slots) Review(slot, now);
}

void ChainKeeper::Review(uint32_t slot, TimePoint now) {
  const Chain& in_force = chains_.at(slot);
  const auto change = changes_.find(slot);
  if (change != changes_.end() && change->second.proposed) {
    GoOn(in_force, &change->second, now);
    return;
  }
  auto next = PlanChain(in_force, [&](OsdId osd) { return HealthOf(in_force, osd, now); });
  if (change != changes_.end()) {
    if (next == change->second.next) {
      GoOn(in_force, &change->second, now);
      return;
    }
    Cancel(in_force, change->second);
    changes_.erase(change);
  }
  if (next.has_value()) Begin(in_force, std::move(*next), now);
}

// Who is removed and may still run must have lost its lease; a life that is over has none, and who
// said that its disk failed has given it up.
void ChainKeeper::Begin(const Chain& in_force, Chain next, TimePoint now) {
  Change change;
  for (const Member& member : in_force.members) {
    if (member.state != MemberState::kServing || next.Serves(member.osd, member.life)) continue;
    const MemberHealth is = HealthOf(in_force, member.osd, now);
    const bool over = is.life > member.life || (is.life == member.life && is.failed);
    if (!over) change.removed.insert(member.osd);
  }
  if (!change.removed.empty()) {
    for (size_t i = 0; i < next.serving(); ++i) {
      change.unsealed[next.members[i].osd] = next.members[i].life;
    }
  }
  change.seal = {term_, ++seals_};
  change.next = std::move(next);
  Change& begun = changes_[in_force.slot] = std::move(change);
  GoOn(in_force, &begun, now);
}

void ChainKeeper::GoOn(const Chain& in_force, Change* change, TimePoint now) {
  const bool again = change->sent_at.ns == 0 || now >= change->sent_at + options_.repeat;
  if (!change->unsealed.empty()) {
    if (again) SendSeals(in_force, *change);
    if (again) change->sent_at = now;
    return;
  }
  if (!change->removed.empty() && now < change->sealed_at + options_.lease_wait) return;
  if (change->proposed && !again) return;
  change->proposed = true;
  change->sent_at = now;
  host_.Propose(term_, change->next);
}

void ChainKeeper::SendSeals(const Chain& in_force, const Change& change) {
  for (const auto& [osd, life] : change.unsealed) {
    host_.Send(osd, {term_, in_force.slot, Seal{in_force, change.seal, change.removed}});
  }
}

// The seal is off; answers to it count no more, as the next one has another number.
void ChainKeeper::Cancel(const Chain& in_force, const Change& change) {
  if (change.removed.empty()) return;
  const SealId off{term_, ++seals_};
  for (const Member& member : in_force.members) {
    host_.Send(member.osd, {term_, in_force.slot, Seal{in_force, off, {}}});
  }
}

void ChainKeeper::Decided(const Chain& chain, TimePoint) {
  const auto known = chains_.find(chain.slot);
  if (!leading_ || known == chains_.end() || chain.version <= known->second.version) return;
  known->second = chain;
  changes_.erase(chain.slot);
  Tell(chain);
}

}  // namespace weir::mds
