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
    board_.is_fenced = [this](uint64_t session) {
      return mds_.up() && mds_.core().keeper().map()->fences.contains(session);
    };
    mds_.on_death = [this] { board_.MdsDied(); };
    network_.SetTap([this](const auto& passing, net::Message* message) {
      Spoil(options_.bug, passing, message);
      TraceMessage(passing, *message);
      return true;
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
    outcome_.cuts = board_.cuts;
    return outcome_;
  }

 private:
  std::string RunAll() {
    if (const Status founded = Found(); !founded.ok()) return founded.message();
    for (size_t i = 0; i < kActors; ++i) NewActor(i);
    Supervise();
    faults_end_ = clock_.Now() + kBusy;
    world_.After(std::chrono::seconds(1), [this] { MakeTrouble(); });
    network_.RunFor(kBusy);
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
    const uint64_t choice = prng_.Uniform(0, 9);
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
    const auto found = std::find_if(actors_.begin(), actors_.end(),
                                    [&](const auto& actor) { return actor.get() == who; });
    if (found == actors_.end()) return board_.Wrong(who->name() + " was evicted, without trouble");
    Trace(who->name() + " was evicted");
    const auto i = static_cast<size_t>(found - actors_.begin());
    world_.After(Duration(0), [this, i, who] {
      if (actors_[i].get() == who) CrashActor(i);
    });
  }
  void NewActorLater(size_t i) {
    world_.After(world_.Between(10'000, 1'000'000), [this, i] {
      coming_[i] = false;
      retired_.push_back(std::move(actors_[i]));
      actors_[i] = std::make_unique<Actor>(board_, "user" + std::to_string(i));
      actors_[i]->Begin();
    });
  }

  std::string SomeMachine() {
    const uint64_t choice = prng_.Uniform(0, kOsds + kActors);
    if (choice < kOsds) return osds_[choice]->name();
    if (choice == kOsds) return "mds";
    return "user" + std::to_string(choice - kOsds - 1);
  }
  void CutSome() {
    const std::string a = SomeMachine(), b = SomeMachine();
    if (a == b) return;
    Trace("trouble: " + a + " and " + b + " are cut off from each other");
    ++board_.cuts;
    network_.Cut(a, b);
    const uint64_t most = prng_.Chance(0.2) ? 9'000'000U : 2'000'000U;
    world_.After(world_.Between(100'000, most), [this] { network_.Heal(); });
  }
  void ChangeWeather() {
    testing::SimNetworkOptions options;
    options.linger = 0.7;
    options.duplicate = prng_.Chance(0.5) ? 0.05 : 0;
    options.disconnect = prng_.Chance(0.5) ? 0.02 : 0;
    options.drop = prng_.Chance(0.2) ? 0.002 : 0;
    if (options.drop > 0) ++board_.cuts;  // what is sent again 10 s later comes after the lease
    if (prng_.Chance(0.3)) options.max_delay = std::chrono::milliseconds(prng_.Uniform(1, 150));
    Trace("trouble: the network changes");
    network_.SetOptions(options);
  }

  void MakeWhole() {
    Trace("no more trouble");
    network_.Heal();
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
  std::vector<std::unique_ptr<Actor>> retired_;
  TimePoint faults_end_;
};

}  // namespace

ClusterOutcome RunCluster(const ClusterOptions& options) {
  return Cluster(options).Run();
}

}  // namespace weir::crash
