#include "tools/weir-dev/dev_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "common/disk/block_device.h"
#include "common/disk/disk_spec.h"
#include "common/disk/tier_spec.h"
#include "common/wire/map.pb.h"
#include "tools/cli/cluster_link.h"
#include "tools/cli/mounts.h"

namespace weir::dev {
namespace {

namespace fs = std::filesystem;
using cli::ProcessId;
using std::chrono::seconds;

constexpr Duration kStartTimeout = seconds(60);
constexpr Duration kStopTimeout = seconds(30);
constexpr size_t kLogLines = 5;
constexpr uint64_t kDefaultOsdSize = 8ull << 30;

// A port that is free now; its daemon keeps it for the life of the cluster.
Result<uint16_t> FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool ok =
      fd >= 0 && bind(fd, generic, length) == 0 && getsockname(fd, generic, &length) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!ok) return Status::FromErrno(error, "cannot find a free port on 127.0.0.1");
  return ntohs(address.sin_port);
}

Status MakeDirectories(const std::string& dir) {
  std::error_code error;
  for (const char* part : {"", "/log", "/run", "/mds"}) {
    fs::create_directories(dir + part, error);
    if (error)
      return Status::FromErrno(error.value(), fmt::format("cannot make '{}{}'", dir, part));
  }
  return Status::Ok();
}

void AddOption(const std::string& option, const std::string& value,
               std::vector<std::string>* command) {
  if (!value.empty()) command->insert(command->end(), {option, value});
}

bool AnyAlive(const State& state) {
  return cli::IsAlive(state.mds) ||
         std::any_of(state.osds.begin(), state.osds.end(),
                     [](const OsdState& osd) { return cli::IsAlive(osd.process); }) ||
         std::any_of(state.mounts.begin(), state.mounts.end(),
                     [](const MountState& mount) { return cli::IsAlive(mount.process); });
}

std::string DiskOption(const OsdState& osd) {
  return osd.tiers.empty() ? "--disk" : "--tier-disk";
}

const std::string& DisksOf(const OsdState& osd) {
  return osd.tiers.empty() ? osd.disk : osd.tiers;
}

std::string NameOf(const DaemonName& name) {
  switch (name.kind) {
    case DaemonName::Kind::kMds:
      return "mds.0";
    case DaemonName::Kind::kOsd:
      return fmt::format("osd.{}", name.index);
    case DaemonName::Kind::kMount:
      break;
  }
  return fmt::format("mnt.{}", name.index);
}

}  // namespace

std::string DevCluster::LogOf(const std::string& name) const {
  return fmt::format("{}/log/{}.log", dir_, name);
}

std::string DevCluster::Binary(const std::string& name) const {
  return cli::OwnDirectory() + "/" + name;
}

Status DevCluster::Up(const std::string& dir, const UpOptions& options) {
  const std::string path = cli::AbsolutePath(dir);
  WEIR_RETURN_IF_ERROR(MakeDirectories(path));
  auto lock = cli::LockFile::Take(path + "/lock");
  if (!lock.ok()) return lock.status().Annotate(fmt::format("cannot use '{}'", dir));
  auto known = LoadState(path);
  if (!known.ok() && known.code() != ErrorCode::kNotFound) return known.status();
  DevCluster cluster(path, std::move(*lock), known.ok() ? std::move(*known) : State());
  if (AnyAlive(cluster.state_)) {
    return {ErrorCode::kBusy,
            fmt::format("the cluster in '{}' is up already (weir-dev status --dir "
                        "{}; weir-dev down --dir {})",
                        dir, dir, dir)};
  }
  WEIR_RETURN_IF_ERROR(cluster.Plan(options));
  Status status = cluster.StartAll();
  if (!status.ok()) {
    if (Status down = cluster.Down(); !down.ok()) {
      status = Status(status.code(), status.message() + "; and then: " + down.message());
    }
  }
  return status;
}

Result<DevCluster> DevCluster::Open(const std::string& dir) {
  const std::string path = cli::AbsolutePath(dir);
  auto state = LoadState(path);
  if (!state.ok()) return state.status();
  auto lock = cli::LockFile::Take(path + "/lock");
  if (!lock.ok()) return lock.status().Annotate(fmt::format("cannot use '{}'", dir));
  return DevCluster(path, std::move(*lock), std::move(*state));
}

// Decides what there is to be, from what was typed and what is on disk.
Status DevCluster::Plan(const UpOptions& options) {
  if (state_.endpoint.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint16_t port, FreePort());
    state_.endpoint = fmt::format("tcp://127.0.0.1:{}", port);
  }
  if (state_.osds.empty()) {
    state_.osd_size = options.osd_size == 0 ? kDefaultOsdSize : options.osd_size;
    state_.token_rate = options.token_rate;
    const bool named = !options.disks.empty() || !options.tiers.empty();
    const size_t images = options.osds > 0 || named ? options.osds : 1;
    for (size_t i = 0; i < images; ++i) {
      state_.osds.push_back({.disk = fmt::format("{}/osd.{}.img", dir_, i), .is_image = true});
    }
    for (const std::string& disk : options.disks) WEIR_RETURN_IF_ERROR(PlanDisk(disk));
    for (const std::string& list : options.tiers) WEIR_RETURN_IF_ERROR(PlanTiers(list));
  } else if (const size_t asked = options.osds + options.disks.size() + options.tiers.size();
             asked > 0 && asked != state_.osds.size()) {
    return {ErrorCode::kInvalid,
            fmt::format("the cluster in '{}' has {} OSDs already: leave out --osds, --disk and "
                        "--tier-disk, or take another --dir",
                        dir_, state_.osds.size())};
  }
  if (!options.mounts.empty()) {
    state_.mounts.clear();
    for (const std::string& mount : options.mounts) {
      state_.mounts.push_back({.path = cli::AbsolutePath(mount), .options = options.mount_options});
    }
  }
  if (!options.web.empty()) state_.web = options.web;
  if (options.metrics || !state_.metrics.empty()) WEIR_RETURN_IF_ERROR(PlanMetrics());
  return Save();
}

// An address for each daemon that has none yet, and the list of them that Prometheus reads.
Status DevCluster::PlanMetrics() {
  std::vector<std::pair<std::string, std::string*>> daemons = {{"mds.0", &state_.metrics}};
  for (size_t i = 0; i < state_.osds.size(); ++i) {
    daemons.emplace_back(fmt::format("osd.{}", i), &state_.osds[i].metrics);
  }
  for (size_t i = 0; i < state_.mounts.size(); ++i) {
    daemons.emplace_back(fmt::format("mnt.{}", i), &state_.mounts[i].metrics);
  }
  std::set<std::string> taken;
  for (const auto& [name, address] : daemons) taken.insert(*address);
  nlohmann::ordered_json targets = nlohmann::ordered_json::array();
  for (const auto& [name, address] : daemons) {
    while (address->empty()) {
      WEIR_ASSIGN_OR_RETURN(const uint16_t port, FreePort());
      std::string free = fmt::format("127.0.0.1:{}", port);
      if (taken.insert(free).second) *address = std::move(free);
    }
    targets.push_back({{"targets", {*address}}, {"labels", {{"daemon", name}}}});
  }
  return cli::WriteFileAtomically(dir_ + "/prometheus.json", targets.dump(1) + "\n");
}

// A disk that is there, or an emulated one whose image is ours to make.
Status DevCluster::PlanDisk(const std::string& disk) {
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk));
  const bool ours = spec.path.empty();
  const std::string image =
      ours ? fmt::format("{}/osd.{}.img", dir_, state_.osds.size()) : cli::AbsolutePath(spec.path);
  state_.osds.push_back(
      {.disk = WithPath(disk, image), .is_image = ours, .image_size = spec.image_size});
  return Status::Ok();
}

// The images that are ours are made here, since each may have a size of its own.
Status DevCluster::PlanTiers(const std::string& text) {
  WEIR_ASSIGN_OR_RETURN(std::vector<TierSpec> tiers, ParseTierDisks(text));
  for (TierSpec& tier : tiers) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(tier.disk));
    if (!spec.path.empty()) {
      tier.disk = WithPath(tier.disk, cli::AbsolutePath(spec.path));
      continue;
    }
    const std::string image = fmt::format("{}/osd.{}.{}.img", dir_, state_.osds.size(), tier.name);
    std::error_code ignored;
    fs::remove(image, ignored);  // of a start that was interrupted before it was noted
    WEIR_RETURN_IF_ERROR(CreateImage(image, spec.image_size));
    tier.disk = WithPath(tier.disk, image);
  }
  state_.osds.push_back({.disk = "", .tiers = FormatTierDisks(tiers)});
  return Status::Ok();
}

Status DevCluster::StartAll() {
  WEIR_RETURN_IF_ERROR(StartMds());
  for (size_t i = 0; i < state_.osds.size(); ++i) {
    if (!state_.osds[i].formatted) WEIR_RETURN_IF_ERROR(FormatOsd(i));
    WEIR_RETURN_IF_ERROR(StartOsd(i));
  }
  for (size_t i = 0; i < state_.mounts.size(); ++i) WEIR_RETURN_IF_ERROR(StartMount(i));
  return Status::Ok();
}

template <typename Ready>
Status DevCluster::WaitFor(const std::string& name, const ProcessId& process, Ready ready) {
  constexpr int kPollMs = 10;
  const TimePoint end = SystemClock::Get().Now() + kStartTimeout;
  while (!ready()) {
    const bool alive = cli::IsAlive(process);
    if (alive && SystemClock::Get().Now() < end) {
      poll(nullptr, 0, kPollMs);
      continue;
    }
    return {ErrorCode::kIo, fmt::format("{} {}; the end of {}:{}", name,
                                        alive ? "does not serve after a minute" : "ended at once",
                                        LogOf(name), cli::TailOf(LogOf(name), kLogLines))};
  }
  return Status::Ok();
}

Status DevCluster::StartMds() {
  std::vector<std::string> command = {Binary("weir-mds"), "--data", dir_ + "/mds", "--listen",
                                      state_.endpoint};
  AddOption("--metrics", state_.metrics, &command);
  AddOption("--web", state_.web, &command);
  WEIR_ASSIGN_OR_RETURN(state_.mds, cli::StartDaemon(command, LogOf("mds.0")));
  WEIR_RETURN_IF_ERROR(Save());
  std::unique_ptr<cli::ClusterLink> link;
  WEIR_ASSIGN_OR_RETURN(link, cli::ClusterLink::Open(state_.endpoint));
  WEIR_RETURN_IF_ERROR(WaitFor("mds.0", state_.mds, [&] { return link->Map().ok(); }));
  return cli::WriteFileAtomically(dir_ + "/endpoint", state_.endpoint + "\n");
}

Status DevCluster::FormatOsd(size_t index) {
  OsdState& osd = state_.osds[index];
  const std::string name = fmt::format("osd.{}", index);
  std::vector<std::string> command = {Binary("weir-osd"), "--mkfs", DiskOption(osd),
                                      DisksOf(osd),       "--mds",  state_.endpoint};
  if (osd.is_image) {
    // What an interrupted mkfs left of our own image is nobody's.
    WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(osd.disk));
    std::error_code ignored;
    fs::remove(spec.path, ignored);
    const uint64_t size = osd.image_size > 0 ? osd.image_size : state_.osd_size;
    command.insert(command.end(), {"--size", std::to_string(size)});
  }
  if (!state_.token_rate.empty()) {
    command.insert(command.end(), {"--token-rate", state_.token_rate});
  }
  if (const int code = cli::RunLogged(command, LogOf(name)); code != 0) {
    return {ErrorCode::kIo, fmt::format("cannot format {} on '{}' (exit {}):{}", name, DisksOf(osd),
                                        code, cli::TailOf(LogOf(name), kLogLines))};
  }
  osd.formatted = true;
  return Save();
}

Status DevCluster::StartOsd(size_t index) {
  OsdState& osd = state_.osds[index];
  const std::string name = fmt::format("osd.{}", index);
  const std::string ready = fmt::format("{}/run/{}.ready", dir_, name);
  std::error_code ignored;
  fs::remove(ready, ignored);
  std::vector<std::string> command = {Binary("weir-osd"), DiskOption(osd), DisksOf(osd), "--mds",
                                      state_.endpoint,    "--ready-file",  ready};
  AddOption("--metrics", osd.metrics, &command);
  WEIR_ASSIGN_OR_RETURN(osd.process, cli::StartDaemon(command, LogOf(name)));
  WEIR_RETURN_IF_ERROR(Save());
  return WaitFor(name, osd.process, [&] { return fs::exists(ready); });
}

Status DevCluster::StartMount(size_t index) {
  MountState& mount = state_.mounts[index];
  const std::string name = fmt::format("mnt.{}", index);
  const std::string pid_file = fmt::format("{}/run/{}.pid", dir_, name);
  std::error_code ignored;
  fs::remove(pid_file, ignored);
  fs::create_directories(mount.path, ignored);
  std::vector<std::string> command = {Binary("weirfs"), state_.endpoint, mount.path, "-o",
                                      "client=" + name, "--pid-file",    pid_file,   "--log-file",
                                      LogOf(name)};
  AddOption("-o", mount.options, &command);
  AddOption("--metrics", mount.metrics, &command);
  const int code = cli::RunLogged(command, LogOf(name));
  const auto pid = cli::ReadFile(pid_file);
  if (code != 0 || !pid.ok()) {
    return {ErrorCode::kIo, fmt::format("cannot mount {} on '{}' (exit {}):{}", name, mount.path,
                                        code, cli::TailOf(LogOf(name), kLogLines))};
  }
  mount.process = cli::Identify(static_cast<pid_t>(std::atoi(pid->c_str())));
  return Save();
}

Status DevCluster::Start(const DaemonName& name) {
  if (cli::IsAlive(ProcessOf(state_, name))) {
    return {ErrorCode::kBusy, fmt::format("{} runs already", NameOf(name))};
  }
  switch (name.kind) {
    case DaemonName::Kind::kMds:
      return StartMds();
    case DaemonName::Kind::kOsd:
      return StartOsd(name.index);
    case DaemonName::Kind::kMount:
      break;
  }
  return StartMount(name.index);
}

Status DevCluster::Kill(const DaemonName& name) {
  const ProcessId process = ProcessOf(state_, name);
  if (!cli::IsAlive(process)) {
    return {ErrorCode::kNotFound, fmt::format("{} does not run", NameOf(name))};
  }
  cli::Signal(process, SIGKILL);
  if (cli::WaitUntilGone(process, kStopTimeout)) return Status::Ok();
  return {ErrorCode::kBusy, fmt::format("{} (pid {}) does not die", NameOf(name), process.pid)};
}

Status DevCluster::Stop(const DaemonName& name) {
  const ProcessId process = ProcessOf(state_, name);
  if (!cli::IsAlive(process)) {
    return {ErrorCode::kNotFound, fmt::format("{} does not run", NameOf(name))};
  }
  cli::Signal(process, SIGTERM);
  if (cli::WaitUntilGone(process, kStopTimeout)) return Status::Ok();
  return {ErrorCode::kBusy,
          fmt::format("{} (pid {}) does not end by SIGTERM; weir-dev kill --dir {} "
                      "{}",
                      NameOf(name), process.pid, dir_, NameOf(name))};
}

Status DevCluster::Down() {
  Status first_error;
  const auto end = [&](const ProcessId& process) {
    cli::Signal(process, SIGTERM);
    if (cli::WaitUntilGone(process, kStopTimeout)) return;
    cli::Signal(process, SIGKILL);
    cli::WaitUntilGone(process, kStopTimeout);
  };
  // Mounts first, so that what they hold still finds its daemons.
  for (MountState& mount : state_.mounts) {
    end(mount.process);
    mount.process = {};
    if (cli::StateOfMount(mount.path) == cli::MountState::kStale) {
      if (Status status = cli::DetachMount(mount.path); first_error.ok()) first_error = status;
    }
  }
  for (OsdState& osd : state_.osds) cli::Signal(osd.process, SIGTERM);
  for (OsdState& osd : state_.osds) {
    end(osd.process);
    osd.process = {};
  }
  end(state_.mds);
  state_.mds = {};
  if (Status status = Save(); first_error.ok()) first_error = status;
  return first_error;
}

}  // namespace weir::dev
