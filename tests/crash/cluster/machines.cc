#include "tests/crash/cluster/machines.h"

#include <utility>

#include "mds/service/mds_core.h"

namespace weir::crash {
namespace {

constexpr uint64_t kDiskBytes = 64 << 20;
constexpr uint64_t kTokenRate = 200 << 20;
constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr uint64_t kCrashWithin = 40;  // commits, or writes and flushes of the disk
constexpr uint64_t kNever = uint64_t{1} << 60;

}  // namespace

SimMds::SimMds(World& world) : world_(world), node_(world.network.Node("mds")) {}

Status SimMds::Boot() {
  world_.network.Revive("mds");
  table_.PowerOn(world_.prng);
  life_ = std::make_shared<int>();
  committing_ = false;
  kv_ = std::make_unique<SimKv>(table_, nullptr, world_.prng);
  kv_->SetBug(KvBugOfMds(world_.bug));
  mds::MdsOptions options;
  options.new_cluster_uuid = kClusterUuid;
  options.lease = kLease;
  options.grace = std::chrono::seconds(4);
  options.background = false;
  options.ns.commit_thread = false;
  options.ns.life = ++lives_;
  options.ns.on_prepared = [this] { CommitLater(); };
  options.ns.on_missing = [this] { LoadLater(); };
  loading_ = false;
  cold_ = std::make_unique<testing::ColdKvStore>(*kv_);
  WEIR_ASSIGN_OR_RETURN(
      server_, mds::MdsServer::Start(*cold_, *node_, world_.clock, {kMdsEndpoint}, options));
  if (on_boot) on_boot();
  TickLater();
  TellFences();
  return {};
}

// Only a Tick makes any.
void SimMds::TellFences() {
  for (const auto& [session, epoch] : core().keeper().map()->fences) {
    Epoch& told = fences_[session];
    if (epoch <= told) continue;
    told = epoch;
    if (on_fence) on_fence(session, epoch.value);
  }
}

mds::MdsCore& SimMds::core() {
  return server_->core();
}

KvStore& SimMds::disk() {
  return *kv_;
}

void SimMds::TickLater() {
  world_.After(kTick, [this, alive = std::weak_ptr(life_)] {
    if (alive.expired() || !up()) return;
    core().Tick();
    if (alive.expired()) return;
    TellFences();
    TickLater();
  });
}

// A while later, so that operations share a commit and a crash can come between.
void SimMds::CommitLater() {
  if (std::exchange(committing_, true)) return;
  world_.After(world_.Between(50, 3000), [this, alive = std::weak_ptr(life_)] {
    if (alive.expired() || !up()) return;
    committing_ = false;
    core().names().CommitPrepared();
  });
}

// A while later, so that other operations pass those that wait for it.
void SimMds::LoadLater() {
  if (std::exchange(loading_, true)) return;
  world_.After(world_.Between(20, 1000), [this, alive = std::weak_ptr(life_)] {
    if (alive.expired() || !up()) return;
    loading_ = false;
    core().names().LoadMissing();
  });
}

void SimMds::CrashSoon() {
  FailAt(world_.prng.Uniform(0, kCrashWithin));
}

void SimMds::CrashInNextCommit(SimKv::Bug tearing) {
  kv_->SetTearing(std::move(tearing));
  FailAt(0);
}

void SimMds::FailAt(uint64_t nth) {
  kv_->FailAt(nth, [this] {
    world_.network.Kill("mds");
    world_.After(Duration(0), [this, alive = std::weak_ptr(life_)] {
      if (!alive.expired()) Crash();
    });
  });
}

void SimMds::Calm() {
  if (up()) kv_->FailAt(kNever, nullptr);
}

void SimMds::Crash() {
  if (!up()) return;
  if (on_death) on_death();
  world_.network.Kill("mds");
  life_.reset();
  server_.reset();
  cold_.reset();
  kv_.reset();
}

SimOsd::SimOsd(World& world, uint32_t id)
    : world_(world),
      name_("osd" + std::to_string(id)),
      node_(world.network.Node(name_)),
      medium_(std::make_unique<MemDevice>(kDiskBytes, name_)) {
  identity_.cluster_uuid = kClusterUuid;
  identity_.osd_uuid = "disk-" + std::to_string(id);
  identity_.osd_id = id;
  identity_.token_rate = kTokenRate;
}

Status SimOsd::Boot() {
  world_.network.Revive(name_);
  table_.PowerOn(world_.prng);
  medium_.PowerOn(world_.prng.Next());
  if (world_.bug == Bug::kWrongOrder) medium_.IgnoreFlushes(true);
  life_ = std::make_shared<int>();
  working_ = dying_ = false;
  run_at_ = TimePoint::Max();
  loop_ =
      std::make_unique<testing::ManualLoop>(world_.clock, [this](TimePoint when) { RunBy(when); });
  device_ = std::make_unique<SimDevice>(medium_, world_.network, world_.clock, world_.prng);
  device_->OnPowerLoss([this] { PowerLost(); });
  auto kv = std::make_unique<SimKv>(table_, device_.get(), world_.prng);
  kv->SetBug(KvBugOfOsd(world_.bug));
  WEIR_ASSIGN_OR_RETURN(store_, SimStore::Open(*device_, std::move(kv), [this] { WorkLater(); }));
  osd::OsdServer::Options server;
  server.listen = {"inproc://" + name_};
  server.mds = kMdsEndpoint;
  server.meter_background = false;  // who asks waits for his turn
  server.loop = loop_.get();
  WEIR_ASSIGN_OR_RETURN(server_, osd::OsdServer::Start(store_->objects(), identity_, *node_,
                                                       world_.clock, std::move(server)));
  WorkLater();
  return {};
}

void SimOsd::WorkLater() {
  if (dying_ || std::exchange(working_, true)) return;
  world_.After(world_.Between(10, 1000), [this, alive = std::weak_ptr(life_)] {
    if (alive.expired()) return;
    working_ = false;
    if (store_ != nullptr) Work();
  });
}

void SimOsd::Work() {
  const bool worked = store_->Work();
  device_->SetImmediate(true);
  const bool moved = store_->MoveOverlays();
  device_->SetImmediate(false);
  if (worked || moved) WorkLater();
}

void SimOsd::RunBy(TimePoint when) {
  if (dying_ || when >= run_at_) return;
  run_at_ = when;
  const TimePoint due = std::max(when, world_.clock.Now());
  world_.network.At(due, [this, when, alive = std::weak_ptr(life_)] {
    if (alive.expired() || run_at_ != when) return;
    run_at_ = TimePoint::Max();
    loop_->RunDue();
    RunBy(std::max(loop_->NextTimer(), world_.clock.Now() + Duration(1000)));
  });
}

void SimOsd::CrashSoon() {
  medium_.PowerLossAt(world_.prng.Uniform(0, kCrashWithin));
}

void SimOsd::Calm() {
  medium_.PowerLossAt(kNever);
}

void SimOsd::PowerLost() {
  world_.network.Kill(name_);
  world_.After(Duration(0), [this, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) Crash();
  });
}

void SimOsd::Slow(Duration most) {
  if (!up()) return;
  device_->SetTiming({.least = std::chrono::milliseconds(5), .most = most});
  world_.After(std::chrono::seconds(2), [this, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) device_->SetTiming({});
  });
}

// Nothing leaves the machine any more; what is under way fails, as the disk is gone.
void SimOsd::Crash() {
  if (!up()) return;
  world_.network.Kill(name_);
  dying_ = true;
  device_->PowerOff();
  server_->BeginStop();
  while (!server_->idle()) {
    if (!store_->Work()) loop_->RunDue();
  }
  server_.reset();
  loop_.reset();
  store_.reset();
  device_.reset();
  life_.reset();
}

}  // namespace weir::crash
