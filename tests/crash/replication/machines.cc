#include "tests/crash/replication/machines.h"

namespace weir::crash::replication {
namespace {

bool Knows(const osd::SlotState& slot, const Request& request) {
  const auto found = slot.objects.find(request.object);
  if (found == slot.objects.end()) return false;
  const auto& [readable, pending] = found->second;
  const auto session = readable.ids.find(request.id.session);
  if (session != readable.ids.end() && (request.id.number < session->second.floor ||
                                        session->second.done.contains(request.id.number))) {
    return true;
  }
  return std::any_of(pending.begin(), pending.end(),
                     [&](const Operation& operation) { return operation.id == request.id; });
}

// A bug: operations at any position of a path share one credit.
class OneCredit final : public osd::Credits {
 public:
  using Credits::Credits;

 private:
  [[nodiscard]] size_t AccountOf(size_t) const override { return 0; }
};

}  // namespace

// ---- the disk ----

bool SimSlotStore::HasRoom(const Operation&) const {
  return !osd_.full() || world_.prng.Chance(0.3);
}

void SimSlotStore::Note(const osd::Mutation& mutation) {
  const auto* publish = std::get_if<osd::Publish>(&mutation);
  if (publish == nullptr) return;
  const auto record = current_.objects.find(publish->object);
  if (record == current_.objects.end()) return;
  for (const Operation& operation : record->second.pending) {
    if (operation.version > publish->up_to) break;
    osd_.Wrong(history_.Published(operation));
  }
}

uint64_t SimSlotStore::Submit(osd::Batch batch) {
  for (const osd::Mutation& mutation : batch) {
    Note(mutation);
    current_.Apply(mutation);
  }
  if (bug_ == Bug::kTombstonesDropped) Spoil(&batch);
  unflushed_.push_back(std::move(batch));
  osd_.Submitted(this);
  return ++submitted_;
}

// What deletes have left is forgotten in the batch that published them.
void SimSlotStore::Spoil(osd::Batch* batch) const {
  osd::Batch forgotten;
  for (const osd::Mutation& mutation : *batch) {
    const auto* publish = std::get_if<osd::Publish>(&mutation);
    if (publish == nullptr) continue;
    const auto record = current_.objects.find(publish->object);
    if (record == current_.objects.end()) continue;
    if (record->second.readable.exists || !record->second.pending.empty()) continue;
    forgotten.push_back(osd::Forget{publish->object});
  }
  for (osd::Mutation& mutation : forgotten) {
    const_cast<SimSlotStore*>(this)->current_.Apply(mutation);
    batch->push_back(std::move(mutation));
  }
}

uint64_t SimSlotStore::Flush() {
  for (const osd::Mutation& mutation : unflushed_.front()) durable_.Apply(mutation);
  unflushed_.pop_front();
  return ++flushed_;
}

void SimSlotStore::LosePower(size_t kept) {
  for (; kept > 0 && !unflushed_.empty(); --kept) Flush();
  unflushed_.clear();
  current_ = durable_;
  submitted_ = flushed_ = 0;
}

void SimSlotStore::Wipe() {
  unflushed_.clear();
  current_ = durable_ = {};
}

// ---- an OSD ----

SimOsd::SimOsd(World& world, History& history, const Setup& setup, OsdId id, std::string* wrong)
    : world_(world), setup_(setup), id_(id), wrong_(wrong) {
  for (uint32_t slot = 0; slot < setup.slots; ++slot) {
    stores_.push_back(std::make_unique<SimSlotStore>(world, history, *this, setup.bug));
  }
}

void SimOsd::Wrong(const std::string& what) {
  if (!what.empty() && wrong_->empty()) *wrong_ = what;
}

TimePoint SimOsd::Now() {
  const Node node = OsdNode(id_);
  if (setup_.bug == Bug::kLeaseStopsInSuspend) return world_.Monotonic(node);
  return world_.BootTime(node);
}

std::function<bool()> SimOsd::ThisBoot() const {
  return [this, boot = boots_] { return up_ && boots_ == boot; };
}

void SimOsd::Boot() {
  if (up_) return;
  up_ = true;
  ++boots_;
  disk_failed_ = false;
  ++life_;
  credits_ = setup_.bug == Bug::kOneCredit ? std::make_unique<OneCredit>(setup_.credit_bytes)
                                           : std::make_unique<osd::Credits>(setup_.credit_bytes);
  for (uint32_t slot = 0; slot < setup_.slots; ++slot) {
    osd::ChainMember::Options options;
    options.slot = slot;
    options.osd = id_;
    options.life = life_;
    options.changes_max = setup_.changes_max;
    options.listing_max = setup_.listing_max;
    options.installs_max = setup_.installs_max;
    members_.push_back(
        std::make_unique<osd::ChainMember>(options, *this, *stores_[slot], *credits_));
  }
  const Node node = OsdNode(id_);
  world_.SetReceiver(node, [this](Node from, const Packet& packet) { Receive(from, packet); });
  world_.Every(node, 100ms, ThisBoot(), [this] {
    for (const auto& member : members_) member->Tick(Now());
  });
  world_.Every(node, 300ms, ThisBoot(), [this] { TellAlive(); });
  TellAlive();
}

void SimOsd::Crash() {
  if (!up_) return;
  up_ = false;
  world_.RemoveReceiver(OsdNode(id_));
  members_.clear();
  credits_.reset();
  for (const auto& store : stores_) {
    store->LosePower(disk_failed_ ? 0 : world_.prng.Uniform(0, store->unflushed()));
  }
}

void SimOsd::FailDisk() {
  if (!up_ || disk_failed_) return;
  disk_failed_ = true;
  for (const auto& member : members_) member->Fail();
  TellAlive();
}

void SimOsd::Wipe() {
  for (const auto& store : stores_) store->Wipe();
}

// Batches of all slots become durable in one order.
void SimOsd::Submitted(SimSlotStore* store) {
  const Duration takes(static_cast<int64_t>(slow_disk_ ? world_.prng.Uniform(1'000'000, 400'000'000)
                                                       : world_.prng.Uniform(100'000, 3'000'000)));
  last_flush_ = std::max(world_.now() + takes, last_flush_);
  const size_t slot =
      static_cast<size_t>(std::find_if(stores_.begin(), stores_.end(),
                                       [&](const auto& each) { return each.get() == store; }) -
                          stores_.begin());
  const auto same = ThisBoot();
  if (setup_.bug == Bug::kDurableTooEarly) {
    world_.After(100us, [this, same, slot] {
      if (same()) members_[slot]->BatchDurable(UINT64_MAX / 2, Now());
    });
  }
  world_.At(last_flush_, [this, same, slot] {
    if (!same() || disk_failed_) return;
    const uint64_t batch = stores_[slot]->Flush();
    if (world_.Suspended(OsdNode(id_))) {
      world_.At(world_.Awake(OsdNode(id_)), [this, same, slot, batch] {
        if (same()) members_[slot]->BatchDurable(batch, Now());
      });
      return;
    }
    members_[slot]->BatchDurable(batch, Now());
  });
}

void SimOsd::Send(OsdId to, PeerMessage message) {
  world_.Send(OsdNode(id_), OsdNode(to), std::move(message));
}

void SimOsd::Answer(osd::ClientId client, Reply reply) {
  world_.Send(OsdNode(id_), static_cast<Node>(client), std::move(reply));
}

void SimOsd::AskLeaders(LeaderAsk ask) {
  for (Node mds = 0; mds < kMdsCount; ++mds) {
    world_.Send(OsdNode(id_), kMdsNodes + mds, MemberMessage{id_, life_, ask});
  }
}

void SimOsd::TellAlive() {
  Alive alive;
  alive.failed = disk_failed_;
  for (uint32_t slot = 0; slot < setup_.slots; ++slot) alive.slots[slot] = members_[slot]->Report();
  for (Node mds = 0; mds < kMdsCount; ++mds) {
    world_.Send(OsdNode(id_), kMdsNodes + mds, MemberMessage{id_, life_, alive});
  }
}

void SimOsd::Receive(Node from, const Packet& packet) {
  if (const auto* message = std::get_if<PeerMessage>(&packet)) {
    ReceivePeer(*message);
  } else if (const auto* request = std::get_if<Request>(&packet)) {
    ReceiveRequest(from, *request);
  } else if (const auto* leader = std::get_if<LeaderMessage>(&packet)) {
    osd::ChainMember& member = *members_[leader->slot];
    member.Handle(*leader, Now());
    const auto* seal = std::get_if<Seal>(&leader->body);
    if (seal != nullptr && !member.failed() && member.seal() == seal->id) {
      world_.Send(OsdNode(id_), from, MemberMessage{id_, life_, Sealed{leader->slot, seal->id}});
    }
  }
}

void SimOsd::ReceivePeer(PeerMessage message) {
  osd::ChainMember& member = *members_[message.slot];
  SpoilArrival(setup_.bug, member.chain(), &message);
  const auto* item = std::get_if<Item>(&message.body);
  const auto* install = item == nullptr ? nullptr : std::get_if<Install>(&item->body);
  if (setup_.bug == Bug::kNewerWins && install != nullptr && install->state.has_value()) {
    const auto& objects = stores_[message.slot]->state().objects;
    const auto mine = objects.find(install->object);
    if (mine != objects.end() && osd::Newest(&mine->second).version > install->state->version) {
      message.body = Item{item->number, Floors{}};
    }
  }
  member.Handle(message, Now());
  Wrong(member.diverged());
}

void SimOsd::ReceiveRequest(Node from, const Request& request) {
  osd::ChainMember& member = *members_[request.slot];
  const auto& chain = member.chain();
  const bool reads = request.kind == RequestKind::kRead && chain.has_value() &&
                     chain->version == request.chain && chain->Serves(id_, life_);
  if (setup_.bug == Bug::kReadsPending && reads && !disk_failed_) {
    // A copy in which everything is readable answers.
    osd::SlotState all = stores_[request.slot]->state();
    all.Apply(osd::Publish{request.object, {UINT64_MAX, 0}});
    const auto record = all.objects.find(request.object);
    Reply reply;
    reply.id = request.id;
    reply.status = ErrorCode::kNotFound;
    if (record != all.objects.end() && record->second.readable.exists) {
      reply.status = ErrorCode::kOk;
      reply.size = record->second.readable.bytes.size();
      if (request.offset < reply.size) {
        reply.bytes = record->second.readable.bytes.substr(request.offset, request.length);
      }
    }
    Answer(from, reply);
    return;
  }
  const bool orders = request.kind != RequestKind::kRead && chain.has_value() &&
                      chain->version == request.chain &&
                      chain->PositionOf(id_, life_) == std::optional<size_t>(0);
  if (setup_.bug == Bug::kRefusalNotOrdered && orders && full_ && world_.prng.Chance(0.5) &&
      !Knows(stores_[request.slot]->state(), request) &&
      request.id.number >= stores_[request.slot]->state().FloorOf(request.id.session)) {
    Reply reply;
    reply.id = request.id;
    reply.status = ErrorCode::kNoSpace;
    Answer(from, reply);
    return;
  }
  member.HandleRequest(from, request, Now());
  Wrong(member.diverged());
}

// ---- an MDS ----

void SimMds::Boot() {
  if (up()) return;
  ++boots_;
  term_ = 0;
  mds::ChainKeeper::Options options;
  if (setup_.bug == Bug::kNoWaitForLease) options.lease_wait = {};
  keeper_ = std::make_unique<mds::ChainKeeper>(options, *this);
  const auto same = [this, boot = boots_] { return up() && boots_ == boot; };
  world_.SetReceiver(node_, [this](Node, const Packet& packet) { Receive(packet); });
  world_.Every(node_, 100ms, same, [this] { keeper_->Tick(Now()); });
  world_.Every(node_, 400ms, same, [this] {
    EtcdAsk ask;
    ask.candidate = candidate();
    ask.asked_at = Now();
    world_.Send(node_, kEtcdNode, ask);
  });
}

void SimMds::Crash() {
  keeper_.reset();
  world_.RemoveReceiver(node_);
}

void SimMds::Send(OsdId to, LeaderMessage message) {
  world_.Send(node_, OsdNode(to), std::move(message));
}

void SimMds::Propose(uint64_t term, const Chain& next) {
  EtcdAsk ask;
  ask.candidate = candidate();
  ask.term = term;
  ask.proposed = next;
  world_.Send(node_, kEtcdNode, ask);
}

void SimMds::Receive(const Packet& packet) {
  if (const auto* message = std::get_if<MemberMessage>(&packet)) keeper_->Handle(*message, Now());
  if (const auto* answer = std::get_if<EtcdAnswer>(&packet)) On(*answer);
}

void SimMds::On(const EtcdAnswer& answer) {
  if (answer.candidate != candidate() || answer.term < term_) return;
  if (!answer.leads) {
    if (keeper_->leading()) ++resigned_;
    keeper_->StepDown();
    return;
  }
  if (answer.decided.has_value()) {
    keeper_->Decided(answer.chains.at(*answer.decided), Now());
    return;
  }
  keeper_->HoldsAuthorityUntil(answer.asked_at + kLease);
  if (answer.term == term_) return;
  term_ = answer.term;
  std::vector<Chain> chains;
  for (const auto& [slot, chain] : answer.chains) chains.push_back(chain);
  keeper_->Lead(term_, std::move(chains), Now());
}

// ---- etcd ----

SimEtcd::SimEtcd(World& world, const Setup& setup) : world_(world) {
  for (uint32_t slot = 0; slot < setup.slots; ++slot) {
    Chain chain;
    chain.slot = slot;
    chain.version = 1;
    chain.min_replicas = setup.min_replicas;
    for (uint32_t i = 0; i < setup.replicas; ++i) {
      chain.members.push_back({OsdId((slot + i) % setup.osds), 1, MemberState::kServing});
    }
    chains_[slot] = std::move(chain);
  }
  world.SetReceiver(kEtcdNode, [this](Node from, const Packet& packet) {
    if (const auto* ask = std::get_if<EtcdAsk>(&packet)) Receive(from, *ask);
  });
}

// The key of a leader lives a little longer here than the leader believes.
bool SimEtcd::Campaign(uint64_t candidate) {
  const TimePoint now = world_.BootTime(kEtcdNode);
  if (leader_ != candidate && now < lease_until_) return false;
  if (leader_ != candidate || now >= lease_until_) ++term_;
  leader_ = candidate;
  lease_until_ = now + kLeaseWait;
  return true;
}

void SimEtcd::Receive(Node from, const EtcdAsk& ask) {
  EtcdAnswer answer;
  answer.candidate = ask.candidate;
  answer.asked_at = ask.asked_at;
  if (ask.proposed.has_value()) {
    Chain& chain = chains_.at(ask.proposed->slot);
    answer.decided = chain.slot;
    answer.leads = ask.candidate == leader_ && ask.term == term_;
    if (answer.leads && chain.version + 1 == ask.proposed->version) {
      chain = *ask.proposed;
      world_.Say("IN FORCE " + Describe(chain));
    }
  } else {
    answer.leads = Campaign(ask.candidate);
  }
  answer.term = term_;
  answer.chains = chains_;
  world_.Send(kEtcdNode, from, answer);
}

}  // namespace weir::crash::replication
