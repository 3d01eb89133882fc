#include "tests/crash/replication/replication.h"

#include "tests/crash/replication/sim_client.h"

namespace weir::crash::replication {
namespace {

constexpr Duration kTrouble = 20s;
constexpr Duration kPeace = 60s;  // in which all must be well again
constexpr Node kClients = 3;

Setup MakeSetup(Prng* prng, Bug bug) {
  Setup setup;
  setup.bug = bug;
  setup.osds = static_cast<uint32_t>(prng->Uniform(3, 5));
  setup.replicas = static_cast<uint32_t>(prng->Uniform(2, std::min<uint64_t>(setup.osds, 4)));
  setup.min_replicas = prng->Chance(0.3) ? 2 : 1;
  if (prng->Chance(0.5)) setup.credit_bytes = 180;  // two operations
  if (prng->Chance(0.5)) setup.changes_max = prng->Uniform(1, 6);
  if (prng->Chance(0.5)) setup.listing_max = prng->Uniform(1, 3);
  if (prng->Chance(0.5)) setup.installs_max = 1;
  setup.splits_only = prng->Chance(0.25);
  if (prng->Chance(0.25)) setup.think = 15ms;
  return setup;
}

class Run {
 public:
  explicit Run(const RunOptions& options)
      : world_(options.seed, options.trace), setup_(MakeSetup(&world_.prng, options.bug)) {
    etcd_ = std::make_unique<SimEtcd>(world_, setup_);
    if (options.bug != Bug::kNone) {
      world_.SetTap([this](Node from, Node to, Packet* packet) {
        return Spoil(setup_.bug, world_, from, to, packet);
      });
    }
    for (uint32_t i = 0; i < setup_.osds; ++i) {
      osds_.push_back(std::make_unique<SimOsd>(world_, history_, setup_, OsdId(i), &wrong_));
      osds_.back()->Boot();
    }
    for (Node i = 0; i < kMdsCount; ++i) {
      mdses_.push_back(std::make_unique<SimMds>(world_, setup_, kMdsNodes + i));
      mdses_.back()->Boot();
    }
    for (Node i = 0; i < kClients; ++i) {
      clients_.push_back(std::make_unique<SimClient>(world_, history_, setup_, kClientNodes + i));
      clients_.back()->Start(etcd_->chains());
    }
  }

  RunOutcome Go() {
    world_.loss = world_.prng.Chance(0.5) ? 0.01 : 0;
    world_.doubled = world_.prng.Chance(0.5) ? 0.02 : 0;
    world_.overtaking = world_.prng.Chance(0.5) ? 0.05 : 0;
    const double answers_lost[] = {0.01, 0.01, 0.3, 0.85};
    world_.answers_lost = answers_lost[world_.prng.Uniform(0, 3)];
    Trouble();
    for (const TimePoint end = world_.now() + kTrouble; world_.now() < end && wrong_.empty();) {
      world_.RunUntil(world_.now() + 100ms);
    }
    Heal();
    for (const TimePoint end = world_.now() + kPeace; world_.now() < end && wrong_.empty();) {
      world_.RunUntil(world_.now() + 100ms);
      if (IsWell().empty()) break;
    }
    if (wrong_.empty()) wrong_ = history_.Judge();
    if (wrong_.empty()) wrong_ = IsWell();
    if (wrong_.empty()) wrong_ = CompareMembers();
    RunOutcome outcome;
    outcome.wrong = wrong_;
    outcome.acknowledged = history_.acknowledged();
    outcome.refused = history_.refused();
    outcome.reads = history_.reads();
    outcome.messages = world_.messages;
    outcome.crashes = crashes_;
    for (const auto& [slot, chain] : etcd_->chains()) outcome.chains += chain.version - 1;
    outcome.digest = MixHash(world_.digest, outcome.acknowledged);
    return outcome;
  }

 private:
  [[nodiscard]] Duration Between(Duration least, Duration most) {
    return Duration(static_cast<int64_t>(world_.prng.Uniform(static_cast<uint64_t>(least.count()),
                                                             static_cast<uint64_t>(most.count()))));
  }
  SimOsd& AnyOsd() { return *osds_[world_.prng.Uniform(0, osds_.size() - 1)]; }
  // One that takes part: an OSD, or sometimes an MDS or etcd.
  Node AnyNode() {
    if (world_.prng.Chance(0.25)) return kMdsNodes + static_cast<Node>(world_.prng.Uniform(0, 1));
    return static_cast<Node>(world_.prng.Uniform(0, osds_.size() - 1));
  }

  void Trouble() {
    world_.After(
        Duration(static_cast<int64_t>(world_.prng.Exponential(setup_.splits_only ? 2e9 : 700e6))),
        [this] {
          if (healed_) return;
          MakeTrouble();
          Trouble();
        });
  }

  void MakeTrouble() {
    if (setup_.splits_only) return world_.prng.Chance(0.6) ? Split() : Suspend();
    const uint64_t dice = world_.prng.Uniform(0, 99);
    if (dice < 24) return CrashSome();
    if (dice < 44) return CutOff();
    if (dice < 58) return Suspend();
    if (dice < 66) return CrashMds();
    if (dice < 74) return FailDisk();
    if (dice < 84) return FillDisk();
    if (dice < 90) return SlowDown();
    if (dice < 94) return Replace();
    world_.Say("CLIENT DIES");
    clients_[world_.prng.Uniform(0, kClients - 1)]->Crash();
  }

  void CrashOsd(SimOsd* osd, Duration away) {
    if (!osd->up()) return;
    ++crashes_;
    osd->Crash();
    world_.After(away, [osd] { osd->Boot(); });
  }

  void CrashSome() {
    const bool all = world_.prng.Chance(0.2);
    const Duration away = Between(20ms, world_.prng.Chance(0.5) ? 1s : 8s);
    world_.Say(all ? "POWER FAILS" : "AN OSD DIES");
    if (!all) return CrashOsd(&AnyOsd(), away);
    for (const auto& osd : osds_) {
      if (world_.prng.Chance(0.85)) CrashOsd(osd.get(), away + Between(0ms, 3s));
    }
  }

  // Two halves that cannot hear each other; clients hear both.
  void Split() {
    std::set<Node> half;
    for (const Node node : Servers()) {
      if (world_.prng.Chance(0.5)) half.insert(node);
    }
    const Duration length = Between(2s, 11s);
    world_.Say("SPLIT");
    for (const Node a : Servers()) {
      for (const Node b : Servers()) {
        if (half.contains(a) == half.contains(b)) continue;
        world_.Cut(a, b);
        world_.After(length, [this, a, b] { world_.Mend(a, b); });
      }
    }
  }

  void CutOff() {
    if (world_.prng.Chance(0.3)) return Split();
    const Node node = AnyNode();
    const Duration length = Between(300ms, 8s);
    const double part = world_.prng.Chance(0.5) ? 1 : 0.5;
    const bool one_way = world_.prng.Chance(0.2);
    world_.Say("CUT OFF " + std::to_string(node));
    for (const Node other : Servers()) {
      if (other == node || !world_.prng.Chance(part)) continue;
      world_.Cut(node, other);
      if (!one_way) world_.Cut(other, node);
      world_.After(length, [this, node, other] {
        world_.Mend(node, other);
        world_.Mend(other, node);
      });
    }
  }

  [[nodiscard]] std::vector<Node> Servers() const {
    std::vector<Node> all{kEtcdNode};
    for (Node i = 0; i < kMdsCount; ++i) all.push_back(kMdsNodes + i);
    for (Node i = 0; i < osds_.size(); ++i) all.push_back(i);
    return all;
  }

  void Suspend() {
    const Node node = AnyNode();
    world_.Say("SUSPEND " + std::to_string(node));
    world_.Suspend(node, Between(500ms, 9s));
  }

  void CrashMds() {
    SimMds* mds = mdses_[world_.prng.Uniform(0, kMdsCount - 1)].get();
    world_.Say("AN MDS DIES");
    mds->Crash();
    world_.After(Between(500ms, 6s), [mds] { mds->Boot(); });
  }

  void FailDisk() {
    SimOsd* osd = &AnyOsd();
    world_.Say("A DISK FAILS");
    osd->FailDisk();
    world_.After(Between(1s, 5s), [this, osd] {
      if (osd->disk_failed()) CrashOsd(osd, 100ms);
    });
  }

  void FillDisk() {
    SimOsd* osd = &AnyOsd();
    osd->SetFull(true);
    world_.After(Between(500ms, 4s), [osd] { osd->SetFull(false); });
  }

  void SlowDown() {
    SimOsd* osd = &AnyOsd();
    const Node node = AnyNode();
    const bool disk = world_.prng.Chance(0.5);
    disk ? osd->SetSlow(true) : static_cast<void>(world_.slow.insert(node));
    world_.After(Between(500ms, 4s), [this, osd, node] {
      osd->SetSlow(false);
      world_.slow.erase(node);
    });
  }

  // A disk that no chain needs is exchanged for an empty one, which goes on counting lives.
  void Replace() {
    for (uint32_t i = 0; i < osds_.size(); ++i) {
      if (osds_[i]->up() || Needed(OsdId(i))) continue;
      world_.Say("NEW DISK " + std::to_string(i));
      osds_[i]->Wipe();
      return;
    }
  }

  [[nodiscard]] bool Needed(OsdId osd) const {
    for (const auto& [slot, chain] : etcd_->chains()) {
      for (const Member& member : chain.members) {
        if (member.osd == osd && member.state == MemberState::kServing) return true;
      }
    }
    return false;
  }

  void Heal() {
    healed_ = true;
    world_.Say("HEAL");
    world_.Heal();
    for (const auto& osd : osds_) {
      osd->SetFull(false);
      osd->SetSlow(false);
      if (osd->disk_failed()) osd->Crash();
      osd->Boot();
    }
    for (const auto& mds : mdses_) mds->Boot();
    for (const auto& client : clients_) client->Stop();
  }

  // What is still to happen before all is well.
  [[nodiscard]] std::string IsWell() const {
    for (const auto& client : clients_) {
      if (client->open() > 0) return "stuck: a request is not answered";
    }
    for (const auto& [slot, chain] : etcd_->chains()) {
      if (chain.serving() < chain.members.size()) {
        return "stuck: a chain is not whole: " + Describe(chain);
      }
      for (const Member& member : chain.members) {
        const SimOsd& osd = *osds_[member.osd.value];
        if (!osd.up() || osd.member(slot).chain() != chain) return "stuck: not all have heard";
        for (const auto& [object, record] : osd.store(slot).state().objects) {
          if (!record.pending.empty()) return "stuck: something is pending";
        }
      }
    }
    return "";
  }

  // Every member has exactly what the history says.
  [[nodiscard]] std::string CompareMembers() const {
    for (const auto& [slot, chain] : etcd_->chains()) {
      for (const Member& member : chain.members) {
        const osd::SlotState& state = osds_[member.osd.value]->store(slot).state();
        for (uint64_t i = 1; i < 10; ++i) {
          const ObjectId object{InodeId(slot * 10 + i), 0};
          const auto record = state.objects.find(object);
          std::optional<std::string> bytes;
          if (record != state.objects.end() && record->second.readable.exists) {
            bytes = record->second.readable.bytes;
          }
          if (bytes != history_.FinalBytes(object)) {
            return "OSD " + std::to_string(member.osd.value) + " has other bytes of object " +
                   std::to_string(object.inode.value) + " than were published";
          }
        }
      }
    }
    return "";
  }

  World world_;
  History history_;
  const Setup setup_;
  std::string wrong_;
  std::unique_ptr<SimEtcd> etcd_;
  std::vector<std::unique_ptr<SimOsd>> osds_;
  std::vector<std::unique_ptr<SimMds>> mdses_;
  std::vector<std::unique_ptr<SimClient>> clients_;
  bool healed_ = false;
  uint64_t crashes_ = 0;
};

}  // namespace

RunOutcome RunReplication(const RunOptions& options) {
  return Run(options).Go();
}

}  // namespace weir::crash::replication
