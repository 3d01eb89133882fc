#include "osd/service/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <optional>

#include "common/base/log.h"
#include "common/base/prng.h"
#include "common/base/units.h"
#include "common/disk/block_device.h"
#include "common/disk/disk_spec.h"
#include "common/monitor/monitor.h"
#include "common/net/rpc.h"
#include "osd/decisions/decision_log.h"
#include "osd/service/format_osd.h"
#include "osd/service/osd_server.h"
#include "osd/service/tier_disks.h"

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
    const std::string draft = path + ".new";
    {
      std::ofstream out(draft, std::ios::trunc);
      out << text << '\n';
      if (!out.flush()) return Status::FromErrno(errno, "cannot write " + draft);
    }
    if (std::rename(draft.c_str(), path.c_str()) != 0) {
      return Status::FromErrno(errno, "cannot rename " + draft + " to " + path);
    }
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

Status MakeImage(const std::string& path, uint64_t size) {
  const UniqueFd fd(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (fd.get() < 0) return Status::FromErrno(errno, "cannot create " + path);
  const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(size));
  if (error == 0) return {};
  ::unlink(path.c_str());
  return Status::FromErrno(error, "cannot allocate " + FormatSize(size) + " for " + path);
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
                  OsdServer::Options server_options) {
  const auto network = net::MakeZmqNetwork();
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

Status ServeTiers(const DaemonOptions& options, const StoreOptions& store_options) {
  WEIR_ASSIGN_OR_RETURN(TierDisks disks, TierDisks::Open(options.tiers));
  const auto identity = disks.OpenStores(store_options);
  Status status = identity.status();
  if (identity.ok()) {
    OsdServer::Options server;
    server.tiers = disks.tiers();
    server.device = server.tiers.front().device;
    status = ServeStore(options, *identity, disks.first(), std::move(server));
  }
  const Status closed = disks.CloseStores();
  return status.ok() ? closed : status;
}

Result<OsdIdentity> FormatDisks(const MkfsDaemonOptions& options, net::RpcClient& mds,
                                const FormatOsdOptions& format) {
  if (!options.tiers.empty()) {
    WEIR_ASSIGN_OR_RETURN(TierDisks disks, TierDisks::Open(options.tiers));
    return disks.Format(mds, format);
  }
  WEIR_ASSIGN_OR_RETURN(const auto device, OpenDisk(options.disk));
  return FormatOsd(*device, mds, format);
}

}  // namespace

Status Serve(const DaemonOptions& options) {
  StateFile pid;
  WEIR_RETURN_IF_ERROR(pid.Write(options.pid_file, std::to_string(::getpid())));
  StoreOptions store_options;
  store_options.memory_bytes = options.memory_bytes / 2;
  if (!options.tiers.empty()) return ServeTiers(options, store_options);
  WEIR_ASSIGN_OR_RETURN(const auto device, OpenDisk(options.disk));
  WEIR_ASSIGN_OR_RETURN(const OsdIdentity identity, ReadIdentity(*device));
  if (identity.tiers > 0) {
    return {ErrorCode::kInvalid, options.disk + " is tier '" + identity.tier + "' of " +
                                     std::to_string(identity.tiers) +
                                     ": name them all with --tier-disk"};
  }
  if (IsProvisional(identity)) {
    return {ErrorCode::kInvalid,
            options.disk + " was never completely formatted: run weir-osd --mkfs again"};
  }
  WEIR_ASSIGN_OR_RETURN(const auto store, OpenStore(*device, store_options));
  OsdServer::Options server;
  server.device = device.get();
  const Status status = ServeStore(options, identity, *store, std::move(server));
  const Status closed = store->Close();
  return status.ok() ? closed : status;
}

Status Mkfs(const MkfsDaemonOptions& options) {
  std::vector<std::string> wanted;
  if (options.size > 0 && options.tiers.empty()) wanted.push_back(options.disk);
  for (const TierSpec& tier : options.tiers) {
    if (options.size > 0) wanted.push_back(tier.disk);
  }
  for (const std::string& disk : wanted) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk));
    WEIR_RETURN_IF_ERROR(MakeImage(spec.path, options.size));
  }
  const auto network = net::MakeZmqNetwork();
  net::RpcClient::Options rpc;
  rpc.session = RandomSeed();
  WEIR_ASSIGN_OR_RETURN(const auto mds,
                        net::RpcClient::Connect(*network, SystemClock::Get(), options.mds, rpc));
  FormatOsdOptions format;
  format.force = options.force;
  format.token_rate = options.token_rate;
  WEIR_ASSIGN_OR_RETURN(format.osd_uuid, NewUuid());
  WEIR_ASSIGN_OR_RETURN(const OsdIdentity identity, FormatDisks(options, *mds, format));
  WEIR_LOG_INFO("{} is osd.{} of cluster {}, {}", options.disk + FormatTierDisks(options.tiers),
                identity.osd_id, identity.cluster_uuid, FormatRate(identity.token_rate));
  return {};
}

}  // namespace weir::osd
