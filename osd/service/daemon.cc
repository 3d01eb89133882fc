#include "osd/service/daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>

#include "common/base/log.h"
#include "common/base/note_file.h"
#include "common/base/prng.h"
#include "common/base/service_manager.h"
#include "common/base/short_turns.h"
#include "common/base/units.h"
#include "common/disk/block_device.h"
#include "common/disk/disk_spec.h"
#include "common/monitor/monitor.h"
#include "common/net/probe.h"
#include "common/net/resolve.h"
#include "common/net/rpc.h"
#include "common/reactor/reactor.h"
#include "common/reactor/watchdog.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "osd/decisions/decision_log.h"
#include "osd/service/format_osd.h"
#include "osd/service/osd_disks.h"
#include "osd/service/osd_server.h"

namespace weir::osd {
namespace {

// Where the daemon asks itself what it shows.
constexpr const char* kSelf = "inproc://osd";

class UniqueFd {
 public:
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  const int fd_;
};

sigset_t OurSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&signals, signal);
  return signals;
}

// The answer of the MDS to the first registration, for a thread that waits on file descriptors.
class Registration {
 public:
  Registration() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  void Set(const Status& status) {
    {
      std::lock_guard lock(mutex_);
      status_ = status;
    }
    const uint64_t one = 1;
    if (::write(event_.get(), &one, sizeof one) < 0) {
      WEIR_LOG_ERROR("cannot signal the registration: {}", errno);
    }
  }
  [[nodiscard]] int fd() const { return event_.get(); }
  // Once fd() is readable.
  Status Take() {
    uint64_t count = 0;
    if (::read(event_.get(), &count, sizeof count) < 0) return {};
    std::lock_guard lock(mutex_);
    return status_.value_or(Status::Ok());
  }

 private:
  UniqueFd event_;
  std::mutex mutex_;
  std::optional<Status> status_;
};

// The number of the signal that came; 0: none did.
int TakeSignal(int signal_fd) {
  signalfd_siginfo info{};
  return ::read(signal_fd, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
}

// Until a stop signal (ok) or a refusal. Writes the ready file in between.
Status WaitForEnd(OsdServer& server, const DaemonOptions& options, Registration& registration,
                  const std::string& endpoint) {
  const sigset_t signals = OurSignals();
  const UniqueFd signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signal_fd.get() < 0) return Status::FromErrno(errno, "cannot wait for signals");
  NoteFile ready;
  for (;;) {
    pollfd fds[] = {{signal_fd.get(), POLLIN, 0}, {registration.fd(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return Status::FromErrno(errno, "cannot wait for signals");
    }
    const int signal = TakeSignal(signal_fd.get());
    if (signal == SIGHUP && options.on_hangup) {
      options.on_hangup();
      continue;
    }
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) return {};
    if (signal != 0) {
      if (options.metering_switch) server.SetMetering(signal == SIGUSR2);
      continue;
    }
    WEIR_RETURN_IF_ERROR(registration.Take());
    WEIR_RETURN_IF_ERROR(ready.Write(options.ready_file, endpoint));
    ServiceManager::Ready("serving at " + endpoint);
    WEIR_LOG_INFO("registered, serving at {}", endpoint);
  }
}

// Lets itself be watched, until it is to end.
Status RunServer(OsdServer& server, net::Network& network, const DaemonOptions& options,
                 Registration& registration) {
  monitor::MonitorOptions watch;
  watch.metrics = options.metrics;
  watch.program = "weir-osd";
  watch.osds = {kSelf};
  WEIR_ASSIGN_OR_RETURN(const auto monitor,
                        monitor::Monitor::Start(network, SystemClock::Get(), watch));
  const std::string endpoint = server.endpoints().front();
  WEIR_LOG_INFO("listens at {}, registers with the MDS at {}", endpoint, options.mds);
  const auto mds = net::ParseEndpoint(options.mds);
  ServiceManager::Says("waiting for the MDS at " + options.mds +
                       (mds.ok() ? net::WhereItWasSought(*mds) : ""));
  return WaitForEnd(server, options, registration, endpoint);
}

template <typename Options>
std::vector<TierSpec> DisksOf(const Options& options) {
  return options.tiers.empty() ? std::vector<TierSpec>{{"", options.disk}} : options.tiers;
}

Result<std::unique_ptr<net::RpcClient>> ConnectToMds(net::Network& network,
                                                     const std::string& endpoint) {
  net::RpcClient::Options options;
  options.session = RandomSeed();
  options.control = true;
  return net::RpcClient::Connect(network, SystemClock::Get(), endpoint, options);
}

constexpr Duration kPatience = std::chrono::seconds(2);

// Two copies of one disk, both written to, would lose what each alone got.
Status CheckNotServed(net::Network& network, const OsdIdentity& identity, const std::string& disks,
                      const wire::ClusterMap& map) {
  for (const wire::OsdInfo& osd : map.osds()) {
    if (osd.uuid() != identity.osd_uuid || !osd.up()) continue;
    const auto endpoint = net::ParseEndpoint(osd.endpoint());
    if (!endpoint.ok() || !net::MayListen(*endpoint, kPatience)) return {};
    net::RpcClient::Options options;
    options.session = RandomSeed();
    const auto there =
        net::RpcClient::Connect(network, SystemClock::Get(), osd.endpoint(), options);
    if (!there.ok()) return {};
    const auto reply = (*there)->CallAndWait(wire::OSD_STATS, {}, {}, {.timeout = kPatience});
    wire::OsdStatsReply stats;
    const bool known = reply.ok() && stats.ParseFromString(reply->body);
    if (!known || stats.osd_uuid() != identity.osd_uuid) return {};
    return {ErrorCode::kBusy, disks + " is osd." + std::to_string(identity.osd_id) +
                                  ", which another weir-osd serves at " + osd.endpoint() +
                                  ": this is a copy of its disk, or it is to be stopped first"};
  }
  return {};
}

// Before anything of it is opened, the MDS that a disk is for tells whether it is of another
// cluster or served already. One that does not answer says so later.
Status CheckCluster(const OsdIdentity& identity, const DaemonOptions& options) {
  const auto network = net::MakeNetwork();
  WEIR_ASSIGN_OR_RETURN(const auto mds, ConnectToMds(*network, options.mds));
  const auto reply = mds->CallAndWait(wire::MDS_GET_MAP, {}, {}, {.timeout = kPatience});
  wire::ClusterMap map;
  if (!reply.ok() || !map.ParseFromString(reply->body)) return {};
  const std::string disks = options.disk + FormatTierDisks(options.tiers);
  if (map.cluster_uuid() == identity.cluster_uuid) {
    return CheckNotServed(*network, identity, disks, map);
  }
  return {ErrorCode::kWrongCluster, disks + " is osd." + std::to_string(identity.osd_id) +
                                        " of cluster " + identity.cluster_uuid + ", the MDS at " +
                                        options.mds + " serves cluster " + map.cluster_uuid()};
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = OurSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

namespace {

// From a store that is open to one that may be closed.
Status ServeStore(const DaemonOptions& options, const OsdIdentity& identity, ObjectStore& store,
                  Reactor& reactor, OsdServer::Options server_options) {
  const auto network = net::MakeNetwork(&reactor);
  server_options.loop = &reactor;
  Registration registration;
  server_options.listen = {options.listen};
  if (!options.metrics.empty()) server_options.listen.emplace_back(kSelf);
  server_options.mds = options.mds;
  server_options.queue_bytes_max = options.memory_bytes / 2;
  server_options.meter_background = options.meter_background;
  server_options.metering = options.metering;
  server_options.watch_processors = true;
  // While somebody waits by contract the loop goes before all that take turns, such as the
  // processes that ask it for more: isolation.py full, 4 KiB reads beside 80 writers, p99 480 to
  // 870 us, now 255.
  server_options.on_guard = [](bool guarded) {
    if (!guarded || !RunAheadOfTurns()) WeighMost();
  };
  server_options.report = [](const std::string& line) { WEIR_LOG_WARN("{}", line); };
  std::unique_ptr<DecisionLog> decisions;
  if (!options.decision_log.empty()) {
    WEIR_ASSIGN_OR_RETURN(decisions,
                          DecisionLog::Create(options.decision_log, server_options.report));
    server_options.recorder = decisions.get();
  }
  server_options.on_registered = [&](const Status& status) { registration.Set(status); };
  auto server =
      OsdServer::Start(store, identity, *network, SystemClock::Get(), std::move(server_options));
  if (!server.ok()) return server.status();
  SetLogField(LogOsd(identity.osd_id));
  WEIR_LOG_INFO("osd.{} of cluster {} on {}", identity.osd_id, identity.cluster_uuid,
                options.disk + FormatTierDisks(options.tiers));
  std::optional<Watchdog> watchdog(std::in_place, reactor, SystemClock::Get(),
                                   ServiceManager::AliveEvery());
  Status status = RunServer(**server, *network, options, registration);
  ServiceManager::Stopping();
  watchdog.reset();
  WEIR_LOG_INFO("osd.{} stops", identity.osd_id);
  (*server)->Stop();
  return status;
}

Status Format(const MkfsDaemonOptions& options, const std::vector<TierSpec>& specs,
              OsdIdentity* identity) {
  const auto network = net::MakeNetwork();
  WEIR_ASSIGN_OR_RETURN(OsdDisks disks, OsdDisks::Open(specs));
  if (!options.force) {
    const Status free = disks.CheckFree();
    if (free.code() == ErrorCode::kExists) {
      return {free.code(), free.message() + "; --force destroys it"};
    }
    WEIR_RETURN_IF_ERROR(free);
  }
  WEIR_ASSIGN_OR_RETURN(const auto mds, ConnectToMds(*network, options.mds));
  FormatOsdOptions format;
  format.force = options.force;
  format.token_rate = options.token_rate;
  WEIR_ASSIGN_OR_RETURN(format.osd_uuid, NewUuid());
  WEIR_ASSIGN_OR_RETURN(*identity, disks.Format(*mds, format));
  return {};
}

// Makes the images of `specs` from the one at `next` on, which get their names when all are
// formatted: of a format that fails or is ended by a signal nothing is left.
Status FormatImages(const MkfsDaemonOptions& options, std::vector<TierSpec>* specs, size_t next,
                    OsdIdentity* identity) {
  if (next == specs->size()) return Format(options, *specs, identity);
  std::string& disk = (*specs)[next].disk;
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk));
  return CreateImage(spec.path, options.size, [&](const std::string& unnamed) {
    disk = WithPath(disk, unnamed);
    return FormatImages(options, specs, next + 1, identity);
  });
}

}  // namespace

Status Serve(const DaemonOptions& options) {
  StoreOptions store_options;
  store_options.memory_bytes = options.memory_bytes / 2;
  WEIR_RETURN_IF_ERROR(NoteFile::Check(options.ready_file));
  WEIR_RETURN_IF_ERROR(DecisionLog::CheckNew(options.decision_log));
  WEIR_ASSIGN_OR_RETURN(const auto reactor, Reactor::Create({.name = "osd"}));
  reactor->Start();
  // One thread serves all clients: beside processes with a thread for each it would get the time of
  // one of those.
  reactor->Post([] { WeighMost(); });
  WEIR_ASSIGN_OR_RETURN(OsdDisks disks, OsdDisks::Open(DisksOf(options), reactor.get()));
  WEIR_ASSIGN_OR_RETURN(OsdIdentity identity, disks.Identify());
  WEIR_RETURN_IF_ERROR(CheckCluster(identity, options));
  NoteFile pid;
  WEIR_RETURN_IF_ERROR(pid.Write(options.pid_file, std::to_string(::getpid())));
  const Result<OsdIdentity> opened = disks.OpenStores(store_options);
  Status status = opened.status();
  if (opened.ok()) identity = *opened;
  if (status.ok()) status = disks.Keep();
  if (status.ok()) {
    OsdServer::Options server;
    server.tiers = disks.tiers();
    server.device = &disks.first_device();
    status = ServeStore(options, identity, disks.first(), *reactor, std::move(server));
  }
  const Status closed = disks.CloseStores();
  return status.ok() ? closed : status;
}

Status Mkfs(const MkfsDaemonOptions& options) {
  OsdIdentity identity;
  std::vector<TierSpec> specs = DisksOf(options);
  WEIR_RETURN_IF_ERROR(options.size > 0 ? FormatImages(options, &specs, 0, &identity)
                                        : Format(options, specs, &identity));
  WEIR_LOG_INFO("{} is osd.{} of cluster {}, {}", options.disk + FormatTierDisks(options.tiers),
                identity.osd_id, identity.cluster_uuid, FormatRate(identity.token_rate));
  return {};
}

}  // namespace weir::osd
