#include "tools/weir-dev/dev_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/disk/block_device.h"
#include "common/disk/data_directory.h"
#include "common/disk/disk_spec.h"
#include "common/disk/tier_spec.h"
#include "common/wire/map.pb.h"
#include "mds/service/mds_store.h"
#include "osd/service/osd_disks.h"
#include "tools/cli/cluster_link.h"
#include "tools/cli/mounts.h"
#include "tools/cli/starter.h"

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

cli::DiskList ListOf(const std::string& dir, const State& state) {
  cli::DiskList list;
  for (const OsdState& osd : state.osds) {
    cli::DiskList::Disk& disk = list.disks.emplace_back();
    disk.is_image = osd.is_image;
    if (const auto tiers = ParseTierDisks(osd.tiers); tiers.ok()) disk.tiers = *tiers;
    const auto spec = ParseDiskSpec(osd.disk);
    if (spec.ok()) disk.path = WithPath(osd.disk, PathToRecord(dir, spec->path));
  }
  return list;
}

Result<std::vector<TierSpec>> PartsOf(const OsdState& osd) {
  if (osd.tiers.empty()) return std::vector<TierSpec>{{"", osd.disk}};
  return ParseTierDisks(osd.tiers);
}

uint64_t SizeOf(const cli::DiskList::Image& image, const cli::DisksWanted& wanted) {
  if (image.size > 0) return image.size;
  return wanted.osd_size > 0 ? wanted.osd_size : kDefaultOsdSize;
}

Status CheckMounts(const std::string& dir, const std::vector<std::string>& mounts) {
  for (const std::string& mount : mounts) {
    const std::string overlap = OverlapOf(dir, mount);
    if (!overlap.empty()) return {ErrorCode::kInvalid, overlap + " (mount elsewhere)"};
  }
  return Status::Ok();
}

// The MDS's directory: there is one as soon as an OSD has been formatted for it.
Result<DataRecord> ExamineMds(const std::string& dir, const State& state) {
  WEIR_ASSIGN_OR_RETURN(const DataRecord record, LookAtDirectory(dir, DataOwner::kWeirMds));
  const bool used = std::any_of(state.osds.begin(), state.osds.end(),
                                [](const OsdState& osd) { return osd.formatted; });
  if (used || record.state == DataState::kWhole) WEIR_RETURN_IF_ERROR(mds::CheckMdsImage(dir));
  return record;
}

Status CheckRate(const osd::OsdIdentity& identity, const DevCluster::UpOptions& options) {
  if (options.rate == 0 || options.rate == identity.token_rate) return Status::Ok();
  return {ErrorCode::kInvalid,
          fmt::format("--token-rate {} contradicts osd.{}, which was formatted with {}: leave it "
                      "out (osdctl osd set {} --token-rate changes it)",
                      options.token_rate, identity.osd_id, FormatRate(identity.token_rate),
                      identity.osd_id)};
}

// Their disks are there, each another OSD of the one cluster.
Status ExamineOsds(const State& state, std::string cluster, const DevCluster::UpOptions& options) {
  std::set<std::string> uuids;
  for (size_t i = 0; i < state.osds.size(); ++i) {
    if (!state.osds[i].formatted) continue;
    WEIR_ASSIGN_OR_RETURN(const std::vector<TierSpec> parts, PartsOf(state.osds[i]));
    auto seen = osd::OsdDisks::Look(parts);
    const auto identity = seen.ok() ? seen->Identify() : Result<osd::OsdIdentity>(seen.status());
    if (!identity.ok()) {
      return {ErrorCode::kCorrupt, fmt::format("the disk of osd.{} is missing, damaged or another: "
                                               "{}",
                                               i, identity.status().message())};
    }
    if (cluster.empty()) cluster = identity->cluster_uuid;
    if (identity->cluster_uuid != cluster || !uuids.insert(identity->osd_uuid).second) {
      return {ErrorCode::kCorrupt,
              fmt::format(
                  "the disk of osd.{}, '{}', is osd.{} of cluster {}, and the others are of "
                  "cluster {} or that very OSD (put back the right one)",
                  i, DisksOf(state.osds[i]), identity->osd_id, identity->cluster_uuid, cluster)};
    }
    WEIR_RETURN_IF_ERROR(CheckRate(*identity, options));
  }
  return Status::Ok();
}

// Those that are to be formatted and are not ours to make.
Status ExamineNamed(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    WEIR_ASSIGN_OR_RETURN(osd::OsdDisks seen, osd::OsdDisks::Look({{"", path}}));
    const Status free = seen.CheckFree();
    if (free.code() == ErrorCode::kExists) {
      return {free.code(), free.message() + " (name another disk; --force destroys what is there)"};
    }
    WEIR_RETURN_IF_ERROR(free);
  }
  return Status::Ok();
}

Status CheckGoesOn() {
  const int signal = cli::Interrupted();
  if (signal == 0) return Status::Ok();
  return {ErrorCode::kCancelled,
          fmt::format("interrupted by SIG{}: what had been started is stopped again",
                      sigabbrev_np(signal))};
}

// Of a file that is replaced by another, never written to; 0: there is none.
ino_t NumberOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
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
  WEIR_RETURN_IF_ERROR(Examine(path, options).status());
  cli::CatchSignals();
  WEIR_ASSIGN_OR_RETURN(cli::Leash leash, cli::Leash::Hold());
  WEIR_RETURN_IF_ERROR(MakeDirectories(path));
  auto lock = cli::LockFile::Take(path + "/lock");
  if (!lock.ok()) return lock.status().Annotate(fmt::format("cannot use '{}'", dir));
  WEIR_ASSIGN_OR_RETURN(State state, Examine(path, options));
  DevCluster cluster(path, std::move(*lock), std::move(state));
  WEIR_RETURN_IF_ERROR(cluster.Plan(options));
  Status status = cluster.StartAll(options.force);
  if (!status.ok()) {
    if (Status down = cluster.Down(); !down.ok()) {
      status = Status(status.code(), status.message() + "; and then: " + down.message());
    }
  }
  if (status.ok()) leash.LetGo();
  return status;
}

Result<State> DevCluster::Examine(const std::string& dir, const UpOptions& options) {
  WEIR_RETURN_IF_ERROR(CheckMounts(dir, options.mounts));
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> named, cli::NamedPaths(options.disks));
  WEIR_ASSIGN_OR_RETURN(const DataRecord record, LookAtDirectory(dir, DataOwner::kWeirDev, named));
  auto state = LoadState(dir);
  if (state.code() == ErrorCode::kNotFound) {
    if (record.state == DataState::kWhole) {
      return {ErrorCode::kCorrupt,
              fmt::format("'{}/weir-dev.json' is missing: it says which disks the cluster has (put "
                          "it back)",
                          dir)};
    }
    WEIR_RETURN_IF_ERROR(LookAtDirectory(dir + "/mds", DataOwner::kWeirMds).status());
    if (!options.force) WEIR_RETURN_IF_ERROR(ExamineNamed(named));
    WEIR_ASSIGN_OR_RETURN(cli::DiskList list, cli::PlanDisks(dir, options.disks));
    for (auto& image : list.images) image.size = SizeOf(image, options.disks);
    WEIR_RETURN_IF_ERROR(cli::CheckRoom(dir, list, mds::MdsStoreOptions().image_bytes));
    return State();
  }
  WEIR_RETURN_IF_ERROR(state.status());
  if (AnyAlive(*state)) {
    return {ErrorCode::kBusy,
            fmt::format("the cluster in '{}' is up already (weir-dev status --dir "
                        "{}; weir-dev down --dir {})",
                        dir, dir, dir)};
  }
  if (options.mounts.empty()) {
    std::vector<std::string> mounts;
    for (const MountState& mount : state->mounts) mounts.push_back(mount.path);
    WEIR_RETURN_IF_ERROR(CheckMounts(dir, mounts));
  }
  Status same = cli::CheckSameDisks(dir, ListOf(dir, *state), options.disks);
  if (!same.ok() && record.state == DataState::kMaking) {
    same = Status(same.code(), same.message() + fmt::format(" (or remove '{}', whose first start "
                                                            "was never finished)",
                                                            dir));
  }
  WEIR_RETURN_IF_ERROR(same);
  WEIR_ASSIGN_OR_RETURN(const DataRecord mds, ExamineMds(dir + "/mds", *state));
  WEIR_RETURN_IF_ERROR(ExamineOsds(*state, mds.cluster, options));
  return state;
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
  if (state_.osds.empty()) WEIR_RETURN_IF_ERROR(PlanDisks(options));
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

// Recorded before anything is made, so that a start which is cut short is known as one.
Status DevCluster::PlanDisks(const UpOptions& options) {
  state_.osd_size = SizeOf({}, options.disks);
  state_.token_rate = options.token_rate;
  WEIR_ASSIGN_OR_RETURN(const cli::DiskList list, cli::PlanDisks(dir_, options.disks));
  for (const cli::DiskList::Disk& disk : list.disks) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<TierSpec> parts, cli::PartsOf(dir_, disk));
    OsdState& osd = state_.osds.emplace_back();
    osd.is_image = disk.is_image;
    (disk.tiers.empty() ? osd.disk : osd.tiers) =
        disk.tiers.empty() ? parts.front().disk : FormatTierDisks(parts);
    for (cli::DiskList::Image image : list.images) {
      if (!image.name.starts_with(fmt::format("osd.{}.", state_.osds.size() - 1))) continue;
      image.size = SizeOf(image, options.disks);
      osd.images.push_back(image);
    }
  }
  DataRecord record{.owner = DataOwner::kWeirDev, .state = DataState::kMaking};
  return WriteRecord(dir_, record);
}

Status DevCluster::NoteWhole() const {
  WEIR_ASSIGN_OR_RETURN(DataRecord record, LookAtDirectory(dir_, DataOwner::kWeirDev));
  if (record.recorded && record.state == DataState::kWhole) return Status::Ok();
  WEIR_ASSIGN_OR_RETURN(const DataRecord mds, LookAtDirectory(dir_ + "/mds", DataOwner::kWeirMds));
  record.state = DataState::kWhole;
  record.cluster = mds.cluster;
  return WriteRecord(dir_, record);
}

Status DevCluster::StartAll(bool force) {
  WEIR_RETURN_IF_ERROR(StartMds());
  for (size_t i = 0; i < state_.osds.size(); ++i) {
    if (!state_.osds[i].formatted) WEIR_RETURN_IF_ERROR(FormatOsd(i, force));
    WEIR_RETURN_IF_ERROR(StartOsd(i));
  }
  WEIR_RETURN_IF_ERROR(NoteWhole());
  for (size_t i = 0; i < state_.mounts.size(); ++i) WEIR_RETURN_IF_ERROR(StartMount(i));
  return CheckGoesOn();
}

template <typename Ready>
Status DevCluster::WaitFor(const std::string& name, const ProcessId& process, Ready ready) {
  constexpr int kPollMs = 10;
  const TimePoint end = SystemClock::Get().Now() + kStartTimeout;
  while (!ready()) {
    WEIR_RETURN_IF_ERROR(CheckGoesOn());
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
  // Whoever has taken the port meanwhile would answer there, too.
  const std::string serves = dir_ + "/mds/endpoint";
  const ino_t before = NumberOf(serves);
  WEIR_ASSIGN_OR_RETURN(state_.mds, cli::StartDaemon(command, LogOf("mds.0")));
  WEIR_RETURN_IF_ERROR(Save());
  WEIR_RETURN_IF_ERROR(WaitFor("mds.0", state_.mds, [&] {
    const ino_t now = NumberOf(serves);
    return now != 0 && now != before;
  }));
  return cli::WriteFileAtomically(dir_ + "/endpoint", state_.endpoint + "\n");
}

Status DevCluster::FormatOsd(size_t index, bool force) {
  OsdState& osd = state_.osds[index];
  const std::string name = fmt::format("osd.{}", index);
  for (const cli::DiskList::Image& image : osd.images) {
    const Status made = CreateImage(dir_ + "/" + image.name, image.size);
    if (made.code() != ErrorCode::kExists) WEIR_RETURN_IF_ERROR(made);
  }
  // A start that was cut short may have formatted it and not come to say so.
  WEIR_ASSIGN_OR_RETURN(const std::vector<TierSpec> parts, PartsOf(osd));
  WEIR_ASSIGN_OR_RETURN(osd::OsdDisks seen, osd::OsdDisks::Look(parts));
  WEIR_ASSIGN_OR_RETURN(const DataRecord mds, LookAtDirectory(dir_ + "/mds", DataOwner::kWeirMds));
  const auto before = seen.Identify();
  if (before.ok() && before->cluster_uuid == mds.cluster) {
    osd.formatted = true;
    return Save();
  }
  std::vector<std::string> command = {Binary("weir-osd"), "--mkfs", DiskOption(osd),
                                      DisksOf(osd),       "--mds",  state_.endpoint};
  if (force && !osd.is_image) command.emplace_back("--force");
  if (!state_.token_rate.empty()) {
    command.insert(command.end(), {"--token-rate", state_.token_rate});
  }
  if (const int code = cli::RunLogged(command, LogOf(name)); code != 0) {
    WEIR_RETURN_IF_ERROR(CheckGoesOn());
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
    WEIR_RETURN_IF_ERROR(CheckGoesOn());
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
  WEIR_ASSIGN_OR_RETURN(cli::Leash leash, cli::Leash::Hold());
  Status status = name.kind == DaemonName::Kind::kMds   ? StartMds()
                  : name.kind == DaemonName::Kind::kOsd ? StartOsd(name.index)
                                                        : StartMount(name.index);
  if (status.ok()) leash.LetGo();
  return status;
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
