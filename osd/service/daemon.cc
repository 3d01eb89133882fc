#include "osd/service/daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/prng.h"
#include "common/base/units.h"
#include "common/disk/block_device.h"
#include "common/disk/disk_spec.h"
#include "common/monitor/monitor.h"
#include "common/net/rpc.h"
#include "common/reactor/reactor.h"
#include "common/wire/mds.pb.h"
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

// A file that a script waits for: there whole, or not there; gone when this object goes.
class StateFile {
 public:
  ~StateFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Status Write(const std::string& path, const std::string& text) {
    if (path.empty()) return {};
    WEIR_RETURN_IF_ERROR(WriteFileAtomically(path, text + "\n"));
    path_ = path;
    return {};
  }

 private:
  std::string path_;
};

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
  StateFile ready;
  for (;;) {
    pollfd fds[] = {{signal_fd.get(), POLLIN, 0}, {registration.fd(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return Status::FromErrno(errno, "cannot wait for signals");
    }
    const int signal = TakeSignal(signal_fd.get());
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) return {};
    if (signal != 0) {
      if (options.metering_switch) server.SetMetering(signal == SIGUSR2);
      continue;
    }
    WEIR_RETURN_IF_ERROR(registration.Take());
    WEIR_RETURN_IF_ERROR(ready.Write(options.ready_file, endpoint));
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
  WEIR_LOG_INFO("listens at {}", endpoint);
  return WaitForEnd(server, options, registration, endpoint);
}

template <typename Options>
std::vector<TierSpec> DisksOf(const Options& options) {
  return options.tiers.empty() ? std::vector<TierSpec>{{"", options.disk}} : options.tiers;
}

// Images that are made for a format, and go again unless that succeeds.
class NewImages {
 public:
  ~NewImages() {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }
  Status Make(const std::vector<TierSpec>& disks, uint64_t size) {
    for (const TierSpec& disk : disks) {
      WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk.disk));
      WEIR_RETURN_IF_ERROR(CreateImage(spec.path, size));
      paths_.push_back(spec.path);
    }
    return {};
  }
  void Keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

Result<std::unique_ptr<net::RpcClient>> ConnectToMds(net::Network& network,
                                                     const std::string& endpoint) {
  net::RpcClient::Options options;
  options.session = RandomSeed();
  options.control = true;
  return net::RpcClient::Connect(network, SystemClock::Get(), endpoint, options);
}

// Before anything of it is opened, a disk of another cluster is told by the MDS that it is for. One
// that does not answer says so later.
Status CheckCluster(const OsdIdentity& identity, const DaemonOptions& options) {
  constexpr Duration kPatience = std::chrono::seconds(2);
  const auto network = net::MakeNetwork();
  WEIR_ASSIGN_OR_RETURN(const auto mds, ConnectToMds(*network, options.mds));
  const auto reply = mds->CallAndWait(wire::MDS_GET_MAP, {}, {}, {.timeout = kPatience});
  wire::ClusterMap map;
  if (!reply.ok() || !map.ParseFromString(reply->body)) return {};
  if (map.cluster_uuid() == identity.cluster_uuid) return {};
  return {ErrorCode::kWrongCluster, options.disk + FormatTierDisks(options.tiers) + " is osd." +
                                        std::to_string(identity.osd_id) + " of cluster " +
                                        identity.cluster_uuid + ", the MDS at " + options.mds +
                                        " serves cluster " + map.cluster_uuid()};
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
  WEIR_LOG_INFO("osd.{} of cluster {} on {}", identity.osd_id, identity.cluster_uuid,
                options.disk + FormatTierDisks(options.tiers));
  Status status = RunServer(**server, *network, options, registration);
  WEIR_LOG_INFO("osd.{} stops", identity.osd_id);
  (*server)->Stop();
  return status;
}

Status Format(const MkfsDaemonOptions& options, OsdIdentity* identity) {
  const auto network = net::MakeNetwork();
  WEIR_ASSIGN_OR_RETURN(OsdDisks disks, OsdDisks::Open(DisksOf(options)));
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

}  // namespace

Status Serve(const DaemonOptions& options) {
  StoreOptions store_options;
  store_options.memory_bytes = options.memory_bytes / 2;
  WEIR_ASSIGN_OR_RETURN(const auto reactor, Reactor::Create({.name = "osd"}));
  reactor->Start();
  WEIR_ASSIGN_OR_RETURN(OsdDisks disks, OsdDisks::Open(DisksOf(options), reactor.get()));
  WEIR_ASSIGN_OR_RETURN(const OsdIdentity identity, disks.Identify());
  WEIR_RETURN_IF_ERROR(CheckCluster(identity, options));
  StateFile pid;
  WEIR_RETURN_IF_ERROR(pid.Write(options.pid_file, std::to_string(::getpid())));
  Status status = disks.OpenStores(store_options).status();
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
  NewImages images;
  if (options.size > 0) WEIR_RETURN_IF_ERROR(images.Make(DisksOf(options), options.size));
  OsdIdentity identity;
  WEIR_RETURN_IF_ERROR(Format(options, &identity));
  images.Keep();
  WEIR_LOG_INFO("{} is osd.{} of cluster {}, {}", options.disk + FormatTierDisks(options.tiers),
                identity.osd_id, identity.cluster_uuid, FormatRate(identity.token_rate));
  return {};
}

}  // namespace weir::osd
