#include "osd/service/osd_server.h"

#include <algorithm>
#include <future>
#include <utility>

#include "common/base/units.h"
#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"
#include "common/placement/divided_limits.h"
#include "common/qos/booking.h"
#include "osd/io/background_floor.h"
#include "osd/qos/admission/service_monitor.h"
#include "osd/service/live_profile.h"
#include "osd/service/processor_watch.h"
#include "osd/service/tier_stats.h"

namespace weir::osd {
namespace {

// A new one for every life of the OSD: the MDS remembers answers per session, and request ids start
// from 1 again.
uint64_t NewSession(const OsdIdentity& identity, Clock& clock) {
  return MixHash(
      std::hash<std::string>{}(identity.osd_uuid),
      MixHash(static_cast<uint64_t>(clock.WallNow().ns), static_cast<uint64_t>(clock.Now().ns)));
}

// At what the disk gives.
constexpr Duration kLook = std::chrono::seconds(2);

SchedulerConfig InitialConfig(const OsdIdentity& identity) {
  SchedulerConfig config;
  config.token_rate = identity.token_rate;
  return config;
}

// Mounts hold a limit over several OSDs, each its part. Here it is the net for one that does not:
// so much higher that what mounts tell of other OSDs, late and in lumps of whole objects, takes
// nothing of their parts.
uint64_t LimitNet(uint64_t bytes_per_s) {
  return 4 * std::min(bytes_per_s, UINT64_MAX / 4);
}

// Peaks in bytes of an OSD that is slower than they add up to are cut alike.
double CutOfPeaks(const ClusterMap& map, uint64_t token_rate) {
  double sum = 0;
  for (const auto& [id, entry] : map.classes) {
    if (entry.spec.disk.type != ClassType::kBestEffort) sum += ShareOn(entry.spec.disk, token_rate);
  }
  return sum > 1 ? 1 / sum : 1;
}

// The class as the scheduler needs it: what of a contract for all OSDs is this one's, what its
// users are promised, a peak as a share of this OSD, and the end of a reservation on the monotonic
// clock.
ClassSpec ToLocal(ClassSpec spec, const ClusterMap& map, uint64_t token_rate, TimePoint now,
                  WallTime wall_now) {
  const size_t osds = map.osds.size();
  spec.disk.peak = ShareOn(spec.disk, token_rate);
  spec.disk.peak_bytes_per_s = 0;
  if (IsLimitedOverOsds(map, spec)) spec.limit_bytes_per_s = LimitNet(*spec.limit_bytes_per_s);
  spec.service = LocalContract(spec.service, osds);
  spec.disk.throughput_bytes_per_s =
      BookedPerOsd(spec.disk.throughput_bytes_per_s, ReservationScope::kCluster, osds);
  spec.transactions.clear();
  if (spec.reservation) spec.transactions = TransactionsOf(*spec.reservation, osds);
  spec.reservation_ends.reset();
  if (spec.reservation && spec.reservation->ends) {
    spec.reservation_ends = now + Duration(spec.reservation->ends->ns - wall_now.ns);
  }
  return spec;
}

}  // namespace

OsdServer::OsdServer(ObjectStore& store, OsdIdentity identity, net::Network& network, Clock& clock,
                     Options options)
    : identity_(std::move(identity)),
      network_(network),
      store_(store),
      clock_(clock),
      options_(std::move(options)),
      loop_(options_.loop) {}

void OsdServer::Build() {
  dispatcher_ = std::make_unique<Dispatcher>(store_, clock_, *loop_, InitialConfig(identity_),
                                             options_.recorder);
  gate_ = std::make_shared<BackgroundGate>(*dispatcher_, clock_, kSystemCompaction,
                                           DefaultFloor(kSystemCompaction, identity_.token_rate));
  if (options_.watch_processors) dispatcher_->WatchProcessors(WatchThisMachine());
  dispatcher_->OnGuard(options_.on_guard);
  if (options_.meter_background) store_.SetBackgroundMeter(gate_);
  ObjectService::Options service;
  service.background_floor = [this] { return gate_->floor(); };
  service.windows.budget_bytes = options_.queue_bytes_max;
  service.report = options_.report;
  service.await_map = true;
  if (options_.device != nullptr) {
    service.profile = [this](const ProfilePattern& pattern) { return Profile(pattern); };
  }
  if (!options_.tiers.empty()) AddTiers(&service);
  SetMetering(options_.metering);
  service_ =
      std::make_unique<ObjectService>(*dispatcher_, store_, clock_, identity_, std::move(service));
  Look();
}

void OsdServer::AddTiers(ObjectService::Options* service) {
  std::vector<TierSet::Tier> tiers;
  tiers.reserve(options_.tiers.size());
  for (const Tier& tier : options_.tiers) {
    tiers.push_back({tier.name, tier.store, tier.token_rate});
  }
  tiers_ =
      std::make_unique<TierSet>(*dispatcher_, std::move(tiers), clock_, options_.meter_background);
  for (size_t k = 1; options_.watch_processors && k < options_.tiers.size(); ++k) {
    tiers_->dispatcher(k).WatchProcessors(WatchThisMachine());
  }
  service->submit = [this](std::unique_ptr<ObjectOp> op, TierName tier) {
    tiers_->Submit(std::move(op), tier);
  };
  service->add_stats = [this](const DispatcherStats& first, const wire::OsdStatsRequest& request,
                              wire::OsdStatsReply* reply) {
    AddTierStats(*tiers_, first, request, reply);
  };
  service->used_bytes = [this] { return tiers_->TotalStore().used_bytes; };
  service->free_bytes = [this](TierName tier) { return tiers_->FreeBytes(tier); };
  for (size_t k = 1; k < options_.tiers.size(); ++k) {
    service->further_disks.push_back({&tiers_->dispatcher(k), options_.tiers[k].store});
  }
}

void OsdServer::SetMetering(bool on) {
  dispatcher_->SetBypass(!on);
  for (size_t k = 1; k < options_.tiers.size(); ++k) tiers_->dispatcher(k).SetBypass(!on);
}

// Of several disks the slowest: promises are weighed with it. A bound may be kept by the quickest.
Result<DiskProfile> OsdServer::Profile(const ProfilePattern& pattern) {
  if (options_.tiers.empty()) {
    return MeasureDisk(*options_.device, store_, clock_, {.pattern = pattern});
  }
  DiskProfile slowest;
  Duration quickest = Duration::max();
  for (const Tier& tier : options_.tiers) {
    WEIR_ASSIGN_OR_RETURN(const DiskProfile profile,
                          MeasureDisk(*tier.device, *tier.store, clock_, {.pattern = pattern}));
    quickest = std::min(quickest, profile.alone_p99);
    const bool slower = slowest.proposed_bytes_per_s == 0 ||
                        profile.proposed_bytes_per_s < slowest.proposed_bytes_per_s;
    if (slower) slowest = profile;
  }
  slowest.alone_p99 = quickest;
  return slowest;
}

Result<std::unique_ptr<OsdServer>> OsdServer::Start(ObjectStore& store, const OsdIdentity& identity,
                                                    net::Network& network, Clock& clock,
                                                    Options options) {
  if (!options.report) options.report = [](const std::string&) {};
  std::unique_ptr<OsdServer> server(
      new OsdServer(store, identity, network, clock, std::move(options)));
  if (server->loop_ == nullptr) {
    WEIR_ASSIGN_OR_RETURN(server->own_, Reactor::Create({.name = "osd"}));
    server->loop_ = server->own_.get();
    server->own_->Start();
  }
  RunInLoopAndWait(*server->loop_, [&server] { server->Build(); });
  WEIR_RETURN_IF_ERROR(server->Listen());
  WEIR_RETURN_IF_ERROR(server->Connect());
  RunInLoopAndWait(*server->loop_, [&server] { server->link_->Start(); });
  return server;
}

Status OsdServer::Listen() {
  if (options_.listen.empty()) {
    return {ErrorCode::kInvalid, "an OSD needs an endpoint to listen on"};
  }
  net::RpcServerOptions rpc;
  // Beyond what the windows allow in the worst case, twice the budget, nothing is even queued.
  rpc.max_queued_bytes = 2 * options_.queue_bytes_max;
  const auto handler = [this](const std::shared_ptr<net::IncomingCall>& call) {
    RunInLoop(*loop_, [service = service_.get(), call] { service->Handle(call); });
  };
  for (const std::string& endpoint : options_.listen) {
    WEIR_ASSIGN_OR_RETURN(auto server,
                          net::RpcServer::Start(network_, clock_, endpoint, handler, rpc));
    servers_.push_back(std::move(server));
  }
  return {};
}

Status OsdServer::Connect() {
  net::RpcClient::Options rpc;
  rpc.session = NewSession(identity_, clock_);
  rpc.control = true;
  WEIR_ASSIGN_OR_RETURN(auto client, net::RpcClient::Connect(network_, clock_, options_.mds, rpc));
  MdsLink::Hooks hooks;
  hooks.apply = [this](const ClusterMap& map) { Apply(map); };
  hooks.came = [this](const wire::ClusterMap& map) { service_->chains().Apply(map); };
  hooks.store_stats = [this] { return tiers_ ? tiers_->TotalStore() : store_.Stats(); };
  hooks.measures = [this] { return tiers_ ? tiers_->Measures() : dispatcher_->Measures(); };
  hooks.times = [this] { return tiers_ ? tiers_->Times() : dispatcher_->Times(); };
  hooks.fenced = [this] { return service_->fences().Drained(); };
  hooks.report = options_.report;
  hooks.registered = options_.on_registered;
  MdsLink::Options link;
  link.identity = identity_;
  link.endpoint = servers_.front()->endpoint();
  for (const Tier& tier : options_.tiers) {
    link.tiers.push_back({tier.name.ToString(), tier.store->Stats().capacity_bytes});
  }
  link_ = std::make_unique<MdsLink>(clock_, *loop_, std::move(link), std::move(hooks),
                                    std::move(client));
  return {};
}

OsdServer::~OsdServer() {
  Stop();
  if (dispatcher_ == nullptr) return;
  RunInLoopAndWait(*loop_, [this] {
    loop_->CancelTimer(look_);
    link_.reset();
    service_.reset();
    tiers_.reset();
    dispatcher_.reset();
  });
}

// What background threads of the stores wait for ends before the loop is asked for anything.
void OsdServer::BeginStop() {
  if (std::exchange(stopping_, true) || dispatcher_ == nullptr) return;
  store_.SetBackgroundMeter(nullptr);
  gate_->Close();
  if (tiers_) tiers_->CloseGates();
  RunInLoopAndWait(*loop_, [this] {
    if (service_) service_->StopAccepting();
    dispatcher_->BeginDrain();
    if (tiers_) tiers_->BeginDrain();
  });
}

bool OsdServer::idle() const {
  return dispatcher_->outstanding() == 0 && (!tiers_ || tiers_->idle());
}

void OsdServer::AwaitIdle() {
  std::promise<void> idle;
  loop_->Post([this, &idle] {
    const auto further = [this, &idle] {
      tiers_ ? tiers_->WhenIdle([&idle] { idle.set_value(); }) : idle.set_value();
    };
    dispatcher_->WhenIdle(further);
  });
  idle.get_future().wait();
}

void OsdServer::Stop() {
  if (std::exchange(stopped_, true) || dispatcher_ == nullptr) return;
  BeginStop();
  const bool elsewhere = !loop_->InLoop();
  if (elsewhere) AwaitIdle();
  servers_.clear();
  service_->EndBackground();   // it writes to the store, which the owner closes next
  if (elsewhere) AwaitIdle();  // a handler may have been past StopAccepting's check
  RunInLoopAndWait(*loop_, [this] {
    if (link_) link_->Stop();
  });
}

void OsdServer::Look() {
  TimePoint next = clock_.Now() + kLook;
  if (tiers_) next = std::min(next, tiers_->Poll());
  if (DiskIsSlow() != reported_slow_) ReportDisk();
  look_ = loop_->RunAt(next, [this] { Look(); });
}

bool OsdServer::DiskIsSlow() const {
  return tiers_ ? tiers_->disk_is_slow() : dispatcher_->disk_is_slow();
}

void OsdServer::ReportDisk() {
  reported_slow_ = DiskIsSlow();
  const std::string name = "osd." + std::to_string(identity_.osd_id);
  if (tiers_) {
    options_.report(name + (reported_slow_ ? ": one of its disks is slower than promised"
                                           : ": its disks keep what was promised again"));
    return;
  }
  const DispatcherStats stats = dispatcher_->Stats(false);
  const std::string gives =
      FormatRate(stats.disk.bytes_per_s) + ", give or take " + FormatRate(stats.disk.give_or_take);
  options_.report(reported_slow_ ? name + ": its disk is slower than promised: it gives " + gives +
                                       " of a token rate of " + FormatRate(stats.base_token_rate)
                                 : name + ": its disk keeps what was promised again");
}

std::vector<std::string> OsdServer::endpoints() const {
  std::vector<std::string> bound;
  for (const auto& server : servers_) bound.push_back(server->endpoint());
  return bound;
}

void OsdServer::Apply(const ClusterMap& map) {
  const auto self = map.osds.find(OsdId(identity_.osd_id));
  const TimePoint now = clock_.Now();
  const WallTime wall_now = clock_.WallNow();
  std::vector<ClassSpec> classes;
  uint64_t booked = 0;
  const SchedulerConfig config =
      self != map.osds.end() ? self->second.qos : InitialConfig(identity_);
  const double cut = CutOfPeaks(map, config.token_rate);
  for (const auto& [id, entry] : map.classes) {
    ClassSpec spec = ToLocal(entry.spec, map, config.token_rate, now, wall_now);
    if (id >= kFirstUserClass) booked += BookingOf(entry.spec, config, map.osds.size()).total();
    const uint64_t floor = BackgroundFloor(spec, config.token_rate);
    if (id == kSystemCompaction) gate_->SetFloor(floor);
    if (id == kSystemPurge || id == kSystemScrub) PromiseFloor(floor, &spec);
    spec.disk.peak *= cut;
    classes.push_back(std::move(spec));
  }
  booked += config.EffectiveBestEffortMin();
  if (tiers_) {
    tiers_->Apply(config, classes);
    tiers_->SetBooked(booked);
  } else {
    dispatcher_->Apply(config, classes);
    dispatcher_->SetBooked(booked);
  }
  service_->fences().Apply(map.fences, map.epoch);
  service_->SetEpoch(map.epoch.value);
}

}  // namespace weir::osd
