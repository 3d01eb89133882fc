// weirfs: mounts a WeirFS, of a cluster or one that lives in this process altogether.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "client/fuse/kernel_tuning.h"
#include "client/fuse/mount.h"
#include "client/takeover/record_file.h"
#include "common/base/awake_processors.h"
#include "common/base/file_clock.h"
#include "common/base/log.h"
#include "common/base/note_file.h"
#include "common/base/short_turns.h"
#include "common/disk/disk_spec.h"
#include "common/disk/tier_spec.h"
#include "common/monitor/http_server.h"
#include "common/monitor/monitor.h"
#include "common/net/resolve.h"
#include "common/net/transport.h"
#include "common/reactor/reactor.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/files.h"
#include "tools/cli/mounts.h"
#include "tools/cli/parse.h"
#include "tools/cli/program.h"
#include "tools/cli/program_config.h"
#include "tools/cli/source.h"
#include "tools/cli/starter.h"
#include "tools/cli/values.h"
#include "tools/cli/version.h"
#include "tools/weirfs/arguments.h"
#include "tools/weirfs/background.h"
#include "tools/weirfs/client_metrics.h"
#include "tools/weirfs/embedded_cluster.h"
#include "tools/weirfs/ending.h"
#include "tools/weirfs/holder.h"
#include "tools/weirfs/mountpoint.h"
#include "tools/weirfs/options.h"
#include "tools/weirfs/remount.h"
#include "tools/weirfs/settings.h"
#include "tools/weirfs/stop_signals.h"
#include "tools/weirfs/unmount.h"
#include "tools/weirfs/user_mount.h"

namespace weir::weirfs {
namespace {

constexpr uint64_t kSmallestOsd = 256ull << 20;
constexpr size_t kMostOsds = 256;
// With more of them the others pay, in power and clock rate, for what one request gains.
constexpr unsigned kFewProcessors = 8;
constexpr size_t kLongestSource = 4095;  // that the kernel keeps
constexpr uint64_t kLeastFiles = 256;    // of its own some 60 to 100; each OSD adds a few
constexpr Duration kHandOverPatience = std::chrono::seconds(20);

// What is to be done, with every word understood and every path absolute.
struct Plan {
  bool embedded = false;
  std::string mds_endpoint;
  std::string mountpoint;
  std::string log_file;
  std::string pid_file;
  bool supervise = false;
  LogLevel log_level = LogLevel::kInfo;
  EmbeddedCluster::Options cluster;
  client::Mount::Options mount;
  std::string metrics;  // canonical HTTP addresses, or empty
  std::string web;
  // Of an error: the same with what its reader must know who typed none of it.
  std::function<Status(const Status&)> explained;
};

Result<std::string> AbsoluteDisk(const std::string& disk) {
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk));
  if (!spec.path.empty()) return WithPath(disk, cli::AbsolutePath(spec.path));
  if (spec.image_size < kSmallestOsd) {
    return Status(ErrorCode::kInvalid, fmt::format("--disk {}: at least 256MiB", disk));
  }
  return disk;
}

Status PlanCluster(const Arguments& arguments, const std::string& data, Plan* plan) {
  plan->embedded = true;
  plan->mds_endpoint = EmbeddedCluster::MdsEndpoint();
  EmbeddedCluster::Options& cluster = plan->cluster;
  cluster.dir = cli::AbsolutePath(data);
  cluster.disks.osds = arguments.osds;
  cluster.force = arguments.force;
  if (arguments.osds > kMostOsds) {
    return {ErrorCode::kInvalid, fmt::format("--osds {}: at most {}", arguments.osds, kMostOsds)};
  }
  for (const std::string& disk : arguments.disks) {
    WEIR_ASSIGN_OR_RETURN(const std::string place, AbsoluteDisk(disk));
    cluster.disks.disks.push_back(place);
  }
  for (const std::string& list : arguments.tier_disks) {
    WEIR_ASSIGN_OR_RETURN(std::vector<TierSpec> tiers, ParseTierDisks(list));
    for (TierSpec& tier : tiers) {
      WEIR_ASSIGN_OR_RETURN(tier.disk, AbsoluteDisk(tier.disk));
    }
    cluster.disks.tiers.push_back(FormatTierDisks(tiers));
  }
  if (!arguments.osd_size.empty()) {
    WEIR_ASSIGN_OR_RETURN(cluster.disks.osd_size,
                          cli::SizeValue("--osd-size", arguments.osd_size, kSmallestOsd));
  }
  if (!arguments.token_rate.empty()) {
    WEIR_ASSIGN_OR_RETURN(cluster.token_rate, cli::RateValue("--token-rate", arguments.token_rate));
  }
  if (plan->log_file.empty()) plan->log_file = cluster.dir + "/weirfs.log";
  return Status::Ok();
}

Status PlanClient(const Arguments& arguments, Plan* plan) {
  if (arguments.osds > 0 || !arguments.osd_size.empty() || !arguments.disks.empty() ||
      !arguments.tier_disks.empty() || !arguments.token_rate.empty() || arguments.force) {
    return {ErrorCode::kInvalid,
            "--osds, --osd-size, --disk, --tier-disk, --token-rate and --force go with --data"};
  }
  const std::string& text = arguments.places.front();
  WEIR_ASSIGN_OR_RETURN(const cli::Source source, cli::SplitSource(text));
  WEIR_ASSIGN_OR_RETURN(const net::Endpoint endpoint, net::ParseEndpoint(source.endpoint));
  if (text.size() > kLongestSource) {
    return {ErrorCode::kInvalid, fmt::format("a source has at most {} bytes", kLongestSource)};
  }
  if (arguments.held.empty()) {  // else it waits, whatever happens to DNS
    const auto resolved = net::Resolve(endpoint);
    if (resolved.code() == ErrorCode::kUnreachable) return resolved.status();
  }
  plan->mds_endpoint = endpoint.ToString();
  plan->mount.subtree = source.subtree;
  plan->mount.fsname = text;
  return Status::Ok();
}

Status PlanMonitor(const Arguments& arguments, Plan* plan) {
  if (!arguments.metrics.empty()) {
    WEIR_ASSIGN_OR_RETURN(plan->metrics, monitor::ParseHttpAddress("--metrics", arguments.metrics,
                                                                   arguments.insecure));
  }
  if (arguments.web.empty()) return Status::Ok();
  if (!plan->embedded) {
    return {ErrorCode::kInvalid,
            "--web goes with --data: the page of a cluster is served by weir-mds --web"};
  }
  WEIR_ASSIGN_OR_RETURN(plan->web,
                        monitor::ParseHttpAddress("--web", arguments.web, arguments.insecure));
  return Status::Ok();
}

Result<MountOptions> OptionsOf(const Arguments& arguments) {
  MountOptions options;
  for (const std::string& list : arguments.option_lists) {
    WEIR_RETURN_IF_ERROR(AddMountOptions(list, geteuid() == 0, &options));
  }
  return options;
}

// -o sync and -o dirsync: the kernel sees to data alone.
bool IsSynchronous(const MountOptions& options) {
  return std::any_of(options.kernel_flags.begin(), options.kernel_flags.end(),
                     [](const std::string& flag) { return flag == "sync" || flag == "dirsync"; });
}

Result<Plan> MakePlan(const Arguments& arguments, const MountOptions& options) {
  Plan plan;
  WEIR_ASSIGN_OR_RETURN(plan.log_level, ParseLogLevel(arguments.log));
  if (!arguments.log_file.empty()) plan.log_file = cli::AbsolutePath(arguments.log_file);
  if (!arguments.pid_file.empty()) plan.pid_file = cli::AbsolutePath(arguments.pid_file);
  WEIR_RETURN_IF_ERROR(NoteFile::Check(plan.pid_file));
  // From fstab a source comes first even with data=DIR, and means nothing then.
  const std::string& data = arguments.data.empty() ? options.data : arguments.data;
  const size_t wanted = data.empty() || !options.data.empty() ? 2 : 1;
  if (arguments.places.size() != wanted) {
    return {ErrorCode::kInvalid,
            "what and where? weirfs --data DIR MNT, or weirfs ENDPOINT[:/SUBTREE] MNT"};
  }
  WEIR_RETURN_IF_ERROR(data.empty() ? PlanClient(arguments, &plan)
                                    : PlanCluster(arguments, data, &plan));
  WEIR_RETURN_IF_ERROR(PlanMonitor(arguments, &plan));
  client::Mount::Options& mount = plan.mount;
  mount.mount_class = options.mount_class;
  mount.client_name = options.client_name;
  mount.read_only = options.read_only;
  mount.allow_other = options.allow_other;
  mount.noatime = options.noatime;
  mount.nodiratime = options.nodiratime;
  mount.strictatime = options.strictatime;
  mount.commit = IsSynchronous(options) ? Duration::zero() : options.commit;
  mount.sync_close = options.sync_close;
  mount.reactors = options.reactors;
  mount.uring = options.uring;
  mount.keep_awake =
      options.keep_awake.value_or(std::thread::hardware_concurrency() <= kFewProcessors);
  if (options.keep_awake.value_or(false) && !AwakeProcessors::MayKeepAwake()) {
    return Status(ErrorCode::kPermission,
                  "-o keep_awake needs /dev/cpu_dma_latency, which root may use where the kernel "
                  "has it: leave the option out");
  }
  mount.exclusive = plan.embedded;
  mount.writeback_cache = options.writeback_cache.value_or(plan.embedded);
  mount.timeout = options.timeout.value_or(Duration::max());
  mount.fuse_options = options.kernel_flags;
  if (arguments.replace && plan.embedded) {
    return Status(ErrorCode::kInvalid,
                  "--replace is for mounts of a cluster: with --data, umount the old one first");
  }
  mount.replace = arguments.replace;
  if (options.supervise && plan.embedded) {
    return Status(ErrorCode::kInvalid,
                  "-o supervise is for mounts of a cluster: with --data the cluster ends with its "
                  "process");
  }
  if (options.supervise && options.uring == client::Mount::Uring::kOn) {
    return Status(ErrorCode::kInvalid,
                  "-o supervise and -o uring=on exclude each other: the kernel does not ask a "
                  "successor for what lies in rings");
  }
  plan.supervise = options.supervise;
  if (!arguments.held.empty()) {  // a look at it would wait for us
    plan.mountpoint = arguments.held_at;
    return plan;
  }
  WEIR_RETURN_IF_ERROR(CheckUserMount(options.allow_other));
  WEIR_ASSIGN_OR_RETURN(plan.mountpoint,
                        PrepareMountpoint(arguments.places.back(), arguments.replace));
  plan.cluster.mountpoint = plan.mountpoint;
  if (!plan.embedded) return plan;
  if (const auto overlap = OverlapOf(plan.cluster.dir, arguments.places.back()); !overlap.empty()) {
    return Status(ErrorCode::kInvalid, overlap + " (mount elsewhere)");
  }
  return plan;
}

void HandOver(client::Mount& mount, const Held& held, Ending* ending) {
  if (const Status status = mount.HandOver(kHandOverPatience); !status.ok()) {
    SendRefusal(held, status.message());
    return;
  }
  WEIR_LOG_INFO("handed over");
  ending->Tell(Status::Ok());
  // Nothing is taken apart: the kernel and the MDS shall see no end.
  _exit(kHandedOver);
}

Result<std::unique_ptr<monitor::Monitor>> StartMonitor(net::Network& network, const Plan& plan,
                                                       const EmbeddedCluster* cluster,
                                                       const client::Mount& mount) {
  monitor::MonitorOptions options;
  options.metrics = plan.metrics;
  options.web = plan.web;
  options.program = "weirfs";
  if (cluster != nullptr) {
    options.mds = plan.mds_endpoint;
    options.osds = cluster->OsdEndpoints();
  }
  options.more.emplace_back(
      [&mount](monitor::MetricPage* page) { AddClientMetrics(mount.counters(), page); });
  return monitor::Monitor::Start(network, SystemClock::Get(), options);
}

// How the mount is made that another process may go on with, or this one goes on with.
client::Mount::Options MountOptionsOf(const Plan& plan, const Held* held) {
  client::Mount::Options options = plan.mount;
  if (held == nullptr) return options;
  options.state_fd = held->state;
  options.device_fd = held->device;
  options.on_device = [held](int fd, const std::string& device) { SendDevice(*held, fd, device); };
  // Processes wait for it, however long the MDS is away.
  if (held->device >= 0) options.connect_timeout = Duration::max();
  return options;
}

// A holder ends after the process that serves, whose successors do not write it anew.
Status WritePid(const Plan& plan, const Held* held, NoteFile* file) {
  if (held == nullptr) return file->Write(plan.pid_file, std::to_string(getpid()));
  if (held->device >= 0 || plan.pid_file.empty()) return Status::Ok();
  WEIR_RETURN_IF_ERROR(NoteFile::Check(plan.pid_file));
  return cli::WriteFileAtomically(plan.pid_file, std::to_string(getppid()) + "\n");
}

// `held`: by a holder; null: this process is all there is.
Status Serve(const Plan& plan, Background& background, const Held* held = nullptr) {
  Ending ending;
  StopSignals signals(
      [&](int signal) {
        background.Announce(InterruptedBy(signal));
        _exit(static_cast<int>(cli::ExitCode::kFailed));
      },
      [held, &ending](client::Mount& mount) {
        if (held != nullptr) HandOver(mount, *held, &ending);
      },
      &ending);
  // Of the MDS, the first OSD and the first reactor of the mount, where all are this process.
  std::unique_ptr<Reactor> reactor;
  if (plan.embedded) {
    WEIR_ASSIGN_OR_RETURN(reactor, Reactor::Create({.name = "mount/0"}));
    reactor->Start();
  }
  const std::unique_ptr<net::Network> network = net::MakeNetwork(reactor.get());
  std::unique_ptr<EmbeddedCluster> cluster;
  if (plan.embedded) {
    WEIR_ASSIGN_OR_RETURN(cluster, EmbeddedCluster::Start(*network, *reactor, plan.cluster));
  }
  // A kernel that writes back stamps what it writes: who stamps beside it goes by its clock.
  Clock& clock = plan.embedded ? static_cast<Clock&>(FileClock::Get()) : SystemClock::Get();
  client::Mount::Options options = MountOptionsOf(plan, held);
  options.before_mount = [&signals] { signals.Mounting(); };
  options.first_reactor = reactor.get();
  const bool is_new = held == nullptr || held->device < 0;
  // A successor before it serves: an umount that it lets end looks who serves then.
  if (!is_new) {
    ending.Announce(held->number.empty() ? client::DeviceOfMount(plan.mountpoint) : held->number);
  }
  WEIR_ASSIGN_OR_RETURN(auto mount, client::Mount::Start(*network, clock, plan.mds_endpoint,
                                                         plan.mountpoint, std::move(options)));
  WEIR_ASSIGN_OR_RETURN(auto monitor, StartMonitor(*network, plan, cluster.get(), *mount));
  if (is_new) ending.Announce(client::DeviceOfMount(plan.mountpoint));
  NoteFile pid_file;
  WEIR_RETURN_IF_ERROR(WritePid(plan, held, &pid_file));
  WEIR_LOG_INFO("mounted on {}", plan.mountpoint);
  if (held != nullptr) SendReady(*held);
  signals.Mounted(mount.get());
  if (is_new) ListForUmount(plan.mountpoint);  // before anybody can umount it
  background.Announce(Status::Ok());
  Status ended = mount->Wait();
  signals.Mounted(nullptr);
  monitor.reset();
  mount.reset();
  if (cluster != nullptr) {
    if (Status status = cluster->Stop(); ended.ok()) ended = status;
  }
  if (ended.ok()) {
    WEIR_LOG_INFO("unmounted {}", plan.mountpoint);
  } else {  // whoever started this process is gone
    WEIR_LOG_ERROR("unmounted {}: {}", plan.mountpoint, ended.message());
  }
  ending.Tell(ended);
  return ended;
}

// Here the holder stays; what serves is its child.
int Supervise(const Plan& plan, Background& background, Holder::Options options, Held held) {
  if (held.state < 0) {
    const Result<int> state = client::RecordFile::Create();
    if (!state.ok()) {
      background.Announce(state.status());
      return static_cast<int>(cli::ExitCodeOf(state.status()));
    }
    held.state = *state;
  }
  options.mountpoint = plan.mountpoint;
  options.on_fork = [&background] { background.LeaveItToChild(); };
  NoteFile pid_file;
  pid_file.Expect(plan.pid_file, std::to_string(getpid()));
  Holder holder(std::move(options), held);
  return holder.Run([&](const Held& given) {
    const Status status = Serve(plan, background, &given);
    if (status.ok()) return 0;
    WEIR_LOG_ERROR("{}", status.message());
    background.Announce(plan.explained(status));
    return static_cast<int>(cli::ExitCodeOf(status));
  });
}

// Where the MDS was sought that does not answer.
Status WithPlace(const Status& status, const std::string& mds_endpoint) {
  const auto endpoint = net::ParseEndpoint(mds_endpoint);
  if (status.code() != ErrorCode::kUnreachable || !endpoint.ok()) return status;
  return {status.code(), status.message() + net::WhereItWasSought(*endpoint)};
}

// What an upgrade runs, as it was called.
Holder::Options HolderOptions(const std::vector<std::string>& argv) {
  Holder::Options options;
  options.argv = argv;
  std::error_code error;
  options.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  options.directory = std::filesystem::current_path(error).string();
  return options;
}

int Run(const Arguments& arguments, const std::vector<std::string>& argv,
        const std::optional<Config>& settings) {
  if (arguments.takes_over != 0)
    return arguments.takes_over == client::RecordFile::kVersion ? 0 : 1;
  if (arguments.upgrade) {
    const Status status = arguments.places.size() == 1
                              ? AskForUpgrade(arguments.places[0])
                              : Status(ErrorCode::kInvalid, "which mount? weirfs --upgrade MNT");
    return status.ok() ? 0 : cli::Fail("weirfs", status);
  }
  const Holder::Options holder = HolderOptions(argv);
  Held held;
  if (!arguments.held.empty()) {
    const auto given = ParseHeld(arguments.held);
    if (!given.ok()) return cli::Fail("weirfs", given.status());
    held = *given;
  }
  const auto options = OptionsOf(arguments);
  if (!options.ok()) return cli::Fail("weirfs", options.status());
  if (options->remount && !arguments.places.empty()) {  // mount(8) names a source, too
    const Status status = Remount(arguments.places.back(), *options);
    return status.ok() ? 0 : cli::Fail("weirfs", status);
  }
  const auto with_origins = [&settings](const Status& status) {
    return settings ? WithOrigins(status, *settings) : status;
  };
  auto plan = MakePlan(arguments, *options);
  if (!plan.ok()) return cli::Fail("weirfs", with_origins(plan.status()));
  plan->explained = [&](const Status& status) {
    return with_origins(plan->embedded ? status : WithPlace(status, plan->mds_endpoint));
  };
  if (const Status files = cli::NeedFiles(kLeastFiles); !files.ok()) {
    return cli::Fail("weirfs", files);
  }
  if (plan->embedded) {
    // What is refused shall be so before there is a log in DIR.
    const Status examined = EmbeddedCluster::Examine(plan->cluster);
    if (!examined.ok()) return cli::Fail("weirfs", examined);
    // What an embedded cluster writes is its owner's; and its log needs DIR before we fork.
    umask(S_IRWXG | S_IRWXO);
    std::error_code error;
    std::filesystem::create_directories(plan->cluster.dir, error);
    if (error) {
      return cli::Fail("weirfs", Status::FromErrno(error.value(), fmt::format("cannot make '{}'",
                                                                              plan->cluster.dir)));
    }
  }
  StopSignals::Block();
  cli::Starter starter = cli::Starter::Take();
  if (arguments.held.empty()) CloseInheritedFiles(starter.fd());
  auto background = arguments.foreground || !arguments.held.empty()
                        ? Result<Background>(Background::Stay())
                        : Background::Leave(plan->log_file);
  if (!background.ok()) {
    const bool is_named = !arguments.log_file.empty();
    return cli::Fail("weirfs", with_origins(is_named ? background.status().Annotate("--log-file")
                                                     : background.status()));
  }
  const std::string log_file = arguments.foreground ? arguments.log_file : "";
  // Behind a process in the background stderr is the log file, or leads nowhere.
  const bool to_journal = !arguments.foreground && plan->log_file.empty();
  Status status = InitLogging(
      {.level = plan->log_level, .file = log_file, .program = "weirfs", .to_journal = to_journal});
  starter.Watch();
  if (status.ok() && plan->supervise) return Supervise(*plan, *background, holder, held);
  if (status.ok()) status = Serve(*plan, *background);
  if (status.ok()) return 0;
  background->Announce(plan->explained(status));
  return static_cast<int>(cli::ExitCodeOf(status));
}

std::optional<int> ParseWords(CLI::App& app, std::vector<std::string> words) {
  std::vector<char*> argv;
  argv.reserve(words.size());
  for (std::string& word : words) argv.push_back(word.data());
  return cli::Parse(app, static_cast<int>(argv.size()), argv.data());
}

// Puts what a file and the environment say before the words that were typed, and into `read`; a
// code: that is all.
std::optional<int> AddSettings(std::vector<std::string>* words, std::optional<Config>* read) {
  CLI::App app("weirfs: mounts a WeirFS", "weirfs");
  Arguments arguments;
  cli::ProgramConfig settings(MountSettings());
  Declare(app, arguments);
  settings.AddFileFlags(app);
  if (const auto ended = ParseWords(app, *words)) return ended;
  const auto typed = OptionsOf(arguments);
  if (!typed.ok()) return cli::Fail("weirfs", typed.status());
  std::vector<std::string> first;
  const bool of_a_mount_that_is_there =
      !arguments.held.empty() || arguments.takes_over != 0 || arguments.upgrade || typed->remount;
  if (!of_a_mount_that_is_there || app.count("--check-config") > 0) {
    const Status given = GiveTyped(app, arguments, &settings);
    if (!given.ok()) return cli::Fail("weirfs", given);
    if (const auto ended = settings.Load()) return ended;
    const Status checked = settings.Check();
    if (!checked.ok()) return cli::Fail("weirfs", checked);
    first = WordsOf(settings.config(), !arguments.data.empty() || !typed->data.empty());
    *read = settings.config();
  }
  *words = WithWords(*words, first);
  return std::nullopt;
}

// By umount.fuse.weirfs; not for people, who have umount(8).
constexpr const char* kUnmount = "--unmount";

int Main(std::vector<std::string> words) {
  if (words.size() > 1 && words[1] == kUnmount) return Unmount({words.begin() + 2, words.end()});
  std::optional<Config> settings;
  if (const auto ended = AddSettings(&words, &settings)) return *ended;
  CLI::App app("weirfs: mounts a WeirFS", "weirfs");
  Arguments arguments;
  Declare(app, arguments);
  if (const auto ended = ParseWords(app, words)) return *ended;
  return Run(arguments, WithoutHeld(words), settings);
}

}  // namespace
}  // namespace weir::weirfs

int main(int argc, char** argv) {
  return weir::cli::RunProgram("weirfs", [=] {
    weir::cli::SetThisBuild();
    weir::TakeShortTurns();
    return weir::weirfs::Main({argv, argv + argc});
  });
}
