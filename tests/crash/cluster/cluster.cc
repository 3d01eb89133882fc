#include "tests/crash/cluster/cluster.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/net/envelope.h"
#include "common/placement/object_audit.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "common/wire/rpc.pb.h"
#include "mds/check/namespace_check.h"
#include "mds/format/ns_keys_format.h"
#include "mds/format/ns_values_format.h"
#include "mds/service/mds_core.h"
#include "tests/crash/cluster/actor.h"

namespace weir::crash {
namespace {

constexpr uint32_t kOsds = 3;
constexpr size_t kActors = 3;
constexpr size_t kSlots = 5;
constexpr Duration kBusy = std::chrono::seconds(20);
// Whom the MDS could not hear it hears again by then: it may be down, and is asked again only after
// kResendInterval.
constexpr Duration kHeardWithin = std::chrono::seconds(6);
constexpr Duration kToEnd = std::chrono::seconds(120);   // for what was begun, once all is whole
constexpr Duration kToPurge = std::chrono::seconds(60);  // leases, graces and retries over

// Such as "REQUEST 17 MDS_OPEN".
std::string NameOf(const testing::SimNetwork::Passing& passing, const net::Message& message) {
  const auto direction = passing.to_server ? net::Direction::kToServer : net::Direction::kToClient;
  wire::RpcHeader header;
  bool matches = false;
  if (!net::DecodeFrame(direction, message.header, message.payload.size(), &header, &matches)
           .ok()) {
    return "?";
  }
  const auto method = static_cast<int>(header.method());
  std::string name =
      wire::RpcHeader::Kind_Name(header.kind()) + " " + std::to_string(header.request_id());
  if (header.status() != 0) name += " (" + header.error() + ")";
  if (method == 0) return name;
  return name + " " +
         (passing.to == "mds" || passing.from == "mds"
              ? wire::MdsMethod_Name(static_cast<wire::MdsMethod>(method))
              : wire::OsdMethod_Name(static_cast<wire::OsdMethod>(method)));
}

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options)
      : options_(options),
        seeds_(options.seed),
        prng_(options.seed * 2 + 1),
        network_(clock_, options.seed * 2),
        world_{clock_, network_, prng_, options.bug},
        board_(world_, kSlots),
        mds_(world_) {
    board_.trace = [this](const std::string& what) { Trace(what); };
    board_.evicted = [this](const Actor* who) { ActorEvicted(who); };
    board_.named = [this](const Actor* who) { ActorNamed(who); };
    mds_.on_fence = [this](uint64_t session, uint64_t epoch) { Fenced(session, epoch); };
    mds_.on_death = [this] { board_.MdsDied(); };
    mds_.on_boot = [this] { board_.MdsIsBack(); };
    network_.SetTap([this](const auto& passing, net::Message* message) {
      Spoil(options_.bug, passing, message);
      TraceMessage(passing, *message);
      const bool set_in = clock_.Now() + kBusy / 2 > faults_end_;
      return !set_in || !Swallows(options_.bug, passing);
    });
    for (uint32_t id = 0; id < kOsds; ++id) {
      osds_[id] = std::make_unique<SimOsd>(world_, id);
    }
  }

  ClusterOutcome Run() {
    const std::string broken = RunAll();
    if (board_.wrong.empty()) board_.wrong = broken;
    outcome_.wrong = board_.wrong;
    outcome_.operations = board_.operations;
    outcome_.messages = network_.messages_sent();
    for (const NamePrefix& prefix : board_.prefixes) outcome_.informed += prefix.informed();
    return outcome_;
  }

 private:
  std::string RunAll() {
    if (const Status founded = Found(); !founded.ok()) return founded.message();
    for (size_t i = 0; i < kActors; ++i) NewActor(i);
    Supervise();
    faults_end_ = clock_.Now() + kBusy;
    world_.After(std::chrono::seconds(1), [this] { MakeTrouble(); });
    network_.RunUntil([this] { return !board_.wrong.empty(); }, kBusy);
    MakeWhole();
    board_.stopping = true;
    const auto all_done = [this] {
      if (!board_.wrong.empty()) return true;
      for (size_t i = 0; i < kActors; ++i) {
        if (coming_[i] || !actors_[i]->done()) return false;
      }
      return true;
    };
    if (!network_.RunUntil(all_done, kToEnd)) return WhoIsStuck();
    if (!board_.wrong.empty()) return "";
    network_.RunFor(Actor::kRest);
    const std::string audited = Audit();
    return audited.empty() ? CheckRest() : audited;
  }

  void Trace(const std::string& what) {
    const std::string line = std::to_string(clock_.Now().ns / 1000) + " " + what;
    Digest(line);
    if (options_.trace) options_.trace(line);
  }
  void Digest(const std::string& bytes) {
    const uint32_t crc = Crc32c(bytes.data(), bytes.size());
    outcome_.digest = outcome_.digest * 31 + crc;
  }
  void TraceMessage(const testing::SimNetwork::Passing& passing, const net::Message& message) {
    Digest(message.header);
    Digest(std::string(message.payload.view()));
    if (!options_.trace) return;
    Trace(passing.from + " > " + passing.to + " " + NameOf(passing, message) + " " +
          std::to_string(message.header.size()) + "+" + std::to_string(message.payload.size()) +
          " " + std::to_string(outcome_.digest));
  }

  Status Found() {
    WEIR_RETURN_IF_ERROR(mds_.Boot());
    for (auto& osd : osds_) {
      wire::RegisterOsdRequest request;
      request.set_osd_uuid(osd->uuid());
      request.set_capacity_bytes(32 << 20);
      request.set_token_rate(200 << 20);
      WEIR_ASSIGN_OR_RETURN(const OsdId id, mds_.core().keeper().RegisterOsd(request));
      WEIR_CHECK("osd" + std::to_string(id.value) == osd->name(), "OSDs count from 0");
      WEIR_RETURN_IF_ERROR(osd->Boot());
    }
    network_.RunFor(std::chrono::seconds(1));
    return {};
  }

  void NewActor(size_t i) {
    actors_[i] = nullptr;
    actors_[i] = std::make_unique<Actor>(board_, "user" + std::to_string(i));
    actors_[i]->Begin();
    // The first one makes the directories before anybody else comes.
    if (i == 0) network_.RunFor(std::chrono::milliseconds(500));
  }

  // Brings back who is down, after a while.
  void Supervise() {
    world_.After(std::chrono::milliseconds(100), [this] {
      if (!mds_.up()) BringBack([this] { return mds_.up(); }, [this] { return mds_.Boot(); }, 0);
      for (size_t i = 0; i < kOsds; ++i) {
        SimOsd& osd = *osds_[i];
        if (osd.up()) continue;
        BringBack([&osd] { return osd.up(); }, [&osd] { return osd.Boot(); }, i + 1);
      }
      Supervise();
    });
  }
  void BringBack(std::function<bool()> up, std::function<Status()> boot, size_t number) {
    if (std::exchange(coming_back_[number], true)) return;
    ++outcome_.crashes;
    world_.After(world_.Between(100'000, 3'000'000), [this, up, boot, number] {
      coming_back_[number] = false;
      if (up()) return;
      const Status booted = boot();
      Trace("machine " + std::to_string(number) + " is back: " + booted.message());
      if (!booted.ok())
        board_.Wrong("machine " + std::to_string(number) +
                     " does not come back: " + booted.message());
    });
  }

  void MakeTrouble() {
    if (clock_.Now() >= faults_end_) return;
    if (options_.bug == Bug::kTornCommit) ambush_ = true;
    const uint64_t choice = prng_.Uniform(0, 10);
    if (choice < 2) {
      const size_t i = prng_.Uniform(0, kOsds - 1);
      Trace("trouble: " + osds_[i]->name() + " loses its power");
      if (osds_[i]->up() && prng_.Chance(0.7)) {
        osds_[i]->CrashSoon();
      } else {
        osds_[i]->Crash();
      }
    } else if (choice < 4) {
      Trace("trouble: the MDS loses its power");
      if (mds_.up() && prng_.Chance(0.7)) {
        mds_.CrashSoon();
      } else {
        mds_.Crash();
      }
    } else if (choice < 5) {
      CrashActor(prng_.Uniform(0, kActors - 1));
    } else if (choice < 7) {
      CutSome();
    } else if (choice < 8) {
      Trace("trouble: whoever has names that are not durable will die, and the MDS with him");
      ambush_ = true;
    } else if (choice < 9) {
      const size_t i = prng_.Uniform(0, kOsds - 1);
      Trace("trouble: the disk of " + osds_[i]->name() + " is slow");
      osds_[i]->Slow(std::chrono::milliseconds(prng_.Uniform(10, 300)));
    } else {
      ChangeWeather();
    }
    world_.After(world_.Between(50'000, 1'500'000), [this] { MakeTrouble(); });
  }

  void CrashActor(size_t i) {
    if (std::exchange(coming_[i], true)) return;
    Trace("trouble: " + actors_[i]->name() + " dies");
    ++outcome_.crashes;
    actors_[i]->Crash();
    NewActorLater(i);
  }
  // Not while he is still talking.
  void ActorEvicted(const Actor* who) {
    const size_t i = NumberOf(who);
    if (i == kActors) return board_.Wrong(who->name() + " was evicted, without trouble");
    Trace(who->name() + " was evicted");
    world_.After(Duration(0), [this, i, who] {
      if (actors_[i].get() == who) CrashActor(i);
    });
  }
  void ActorNamed(const Actor* who) {
    const size_t i = NumberOf(who);
    if (!ambush_ || !mds_.up() || i == kActors || board_.EarlyChangesOf(who) < 2) return;
    ambush_ = false;
    mds_.CrashInNextCommit(TearingOfMds(options_.bug));
    world_.After(Duration(0), [this, i, who] {
      if (actors_[i].get() == who) CrashActor(i);
    });
  }
  [[nodiscard]] size_t NumberOf(const Actor* who) const {
    const auto found = std::find_if(actors_.begin(), actors_.end(),
                                    [&](const auto& actor) { return actor.get() == who; });
    return static_cast<size_t>(found - actors_.begin());
  }
  // Whoever is alive and can be heard keeps his session.
  void Fenced(uint64_t session, uint64_t epoch) {
    Trace("fenced under epoch " + std::to_string(epoch) + ": session " + std::to_string(session));
    board_.Fenced(session, epoch);
    for (const auto& actor : actors_) {
      if (actor == nullptr || actor->mount().session() != session) continue;
      if (!board_.WasCutOff(actor->name(), clock_.Now() - kHeardWithin)) {
        board_.Wrong(actor->name() + " is evicted, and was not cut off");
      }
    }
  }
  void NewActorLater(size_t i) {
    world_.After(world_.Between(10'000, 1'000'000), [this, i] {
      coming_[i] = false;
      retired_.push_back(std::move(actors_[i]));
      board_.cuts.erase(retired_.back()->name());
      for (const Cut& cut : cuts_) NoteCut(cut);
      actors_[i] = std::make_unique<Actor>(board_, "user" + std::to_string(i));
      actors_[i]->Begin();
    });
  }

  struct Cut {
    std::string a, b;
    TimePoint end;
  };
  void NoteCut(const Cut& cut) {
    if (cut.a != "mds" && cut.b != "mds") return;
    board_.cuts[cut.a == "mds" ? cut.b : cut.a].push_back({clock_.Now(), cut.end});
  }
  std::string SomeMachine() {
    const uint64_t choice = prng_.Uniform(0, kOsds + kActors);
    if (choice < kOsds) return osds_[choice]->name();
    if (choice == kOsds) return "mds";
    return SomeUser();
  }
  std::string SomeUser() { return "user" + std::to_string(prng_.Uniform(0, kActors - 1)); }
  void CutSome() {
    // Of whom the MDS hears nothing for that long it may give up.
    if (prng_.Chance(0.3)) return CutOff(SomeUser(), "mds", world_.Between(4'000'000, 10'000'000));
    const std::string a = SomeMachine(), b = SomeMachine();
    const uint64_t most = prng_.Chance(0.2) ? 9'000'000U : 2'000'000U;
    if (a != b) CutOff(a, b, world_.Between(100'000, most));
  }
  void CutOff(const std::string& a, const std::string& b, Duration time) {
    Trace("trouble: " + a + " and " + b + " are cut off from each other");
    ++outcome_.cuts;
    network_.Cut(a, b);
    cuts_.push_back({a, b, clock_.Now() + time});
    NoteCut(cuts_.back());
    world_.After(time, [this] {
      network_.Heal();
      std::erase_if(cuts_, [this](const Cut& cut) { return cut.end <= clock_.Now(); });
      for (const Cut& cut : cuts_) network_.Cut(cut.a, cut.b);
    });
  }
  void ChangeWeather() {
    testing::SimNetworkOptions options;
    options.linger = 0.7;
    options.duplicate = prng_.Chance(0.5) ? 0.05 : 0;
    options.disconnect = prng_.Chance(0.5) ? 0.02 : 0;
    options.drop = prng_.Chance(0.2) ? 0.002 : 0;
    if (prng_.Chance(0.3)) options.max_delay = std::chrono::milliseconds(prng_.Uniform(1, 150));
    Trace("trouble: the network changes");
    network_.SetOptions(options);
  }

  void MakeWhole() {
    Trace("no more trouble");
    ambush_ = false;
    network_.Heal();
    cuts_.clear();
    board_.Healed();
    network_.SetOptions({});
    mds_.Calm();
    for (auto& osd : osds_) osd->Calm();
  }

  std::string WhoIsStuck() {
    std::string who = "not done long after all is whole:";
    for (const auto& actor : actors_) {
      if (!actor->done()) who += " " + actor->name() + " " + actor->doing() + ";";
    }
    return who;
  }

  std::string Audit() {
    Actor auditor(board_, "auditor");
    auditor.BeginAudit();
    const auto done = [&] { return auditor.done() || !board_.wrong.empty(); };
    if (!network_.RunUntil(done, kToEnd)) return "the audit is stuck: " + auditor.doing();
    return board_.wrong;
  }

  // What nobody has a name for must be gone, everything else must hold together.
  std::string CheckRest() {
    for (auto& actor : actors_) actor->Crash();
    network_.RunFor(kToPurge);
    CheckReport names;
    const Status checked = mds::CheckNamespace(mds_.disk(), {}, &names);
    if (!checked.ok()) return checked.message();
    if (names.findings.found() > 0) return ToText(names);
    for (const char* fact : {"orphans", "purges", "truncations"}) {
      if (names.Fact(fact) > 0) return "at the end there are still " + std::string(fact);
    }
    std::string wrong = CheckObjects();
    for (size_t i = 0; i < kOsds && wrong.empty(); ++i) wrong = CheckSpace(*osds_[i]);
    return wrong;
  }

  std::string CheckObjects() {
    const auto map = mds_.core().keeper().map();
    ObjectAudit audit(*map);
    for (const auto& [id, entry] : map->osds) {
      osd::ObjectStore& store = osds_[id.value]->store();
      ObjectId from{InodeId(0), 0};
      while (true) {
        const auto next = store.NextObject(from);
        if (!next.ok()) return next.status().message();
        if (!next->has_value()) break;
        const ObjectId object = **next;
        from = {object.inode, object.index + 1};
        const auto file = FileAtMds(object.inode);
        if (!file.ok()) return file.status().message();
        audit.Saw(id, object, 0, *file);
      }
    }
    const CheckReport report = audit.Report();
    return report.findings.found() == 0 ? "" : ToText(report);
  }

  Result<std::optional<AuditedFile>> FileAtMds(InodeId inode) {
    const auto stored = mds_.disk().Get(mds::MakeKey(mds::Table::kInode, inode.value));
    if (stored.code() == ErrorCode::kNotFound) return std::optional<AuditedFile>();
    if (!stored.ok()) return stored.status();
    WEIR_ASSIGN_OR_RETURN(const auto record, mds::DecodeValue<mds::InodeRecord>(*stored));
    AuditedFile file;
    file.layout.stripe_unit = record.layout().stripe_unit();
    file.layout.stripe_count = record.layout().stripe_count();
    file.layout.object_size = record.layout().object_size();
    file.layout.pool = PoolId(record.layout().pool());
    file.size = record.size();
    return std::optional(file);
  }

  // A store that begins anew counts what it has: not a block more or less than it knew.
  std::string CheckSpace(SimOsd& osd) {
    const osd::StoreStats before = osd.store().Stats();
    osd.Crash();
    if (const Status booted = osd.Boot(); !booted.ok()) return booted.message();
    const osd::StoreStats after = osd.store().Stats();
    if (before.used_bytes == after.used_bytes && before.objects == after.objects) return "";
    return osd.name() + " believes in " + std::to_string(before.used_bytes) + " bytes of " +
           std::to_string(before.objects) + " objects, and has " +
           std::to_string(after.used_bytes) + " of " + std::to_string(after.objects);
  }

  const ClusterOptions options_;
  ClusterOutcome outcome_;
  ScopedSeeds seeds_;
  testing::ManualClock clock_;
  Prng prng_;
  testing::SimNetwork network_;
  World world_;
  Board board_;
  SimMds mds_;
  std::array<std::unique_ptr<SimOsd>, kOsds> osds_;
  std::array<bool, kOsds + 1> coming_back_{};
  std::array<std::unique_ptr<Actor>, kActors> actors_;
  std::array<bool, kActors> coming_{};
  std::vector<Cut> cuts_;  // in force
  bool ambush_ = false;    // for the next one with several names that are not durable
  std::vector<std::unique_ptr<Actor>> retired_;
  TimePoint faults_end_ = TimePoint::Max();
};

}  // namespace

ClusterOutcome RunCluster(const ClusterOptions& options) {
  return Cluster(options).Run();
}

}  // namespace weir::crash
