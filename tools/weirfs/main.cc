// weirfs: mounts a WeirFS, of a cluster or one that lives in this process altogether.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <thread>

#include "client/fuse/mount.h"
#include "common/base/log.h"
#include "common/base/short_turns.h"
#include "common/disk/disk_spec.h"
#include "common/disk/tier_spec.h"
#include "common/monitor/http_server.h"
#include "common/monitor/monitor.h"
#include "common/net/endpoint.h"
#include "common/net/transport.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/files.h"
#include "tools/cli/mounts.h"
#include "tools/cli/parse.h"
#include "tools/cli/values.h"
#include "tools/weirfs/background.h"
#include "tools/weirfs/client_metrics.h"
#include "tools/weirfs/embedded_cluster.h"
#include "tools/weirfs/mountpoint.h"
#include "tools/weirfs/options.h"

namespace weir::weirfs {
namespace {

constexpr uint64_t kSmallestOsd = 256ull << 20;
constexpr size_t kMostOsds = 256;

struct Arguments {
  std::vector<std::string> places;  // [ENDPOINT[:/SUBTREE]] MNT
  std::vector<std::string> option_lists;
  std::string data, osd_size, token_rate, log = "info", log_file, pid_file;
  std::string metrics, web;
  bool insecure = false, replace = false;
  size_t osds = 0;
  std::vector<std::string> disks, tier_disks;
  bool foreground = false;
};

// What is to be done, with every word understood and every path absolute.
struct Plan {
  bool embedded = false;
  std::string mds_endpoint;
  std::string mountpoint;
  std::string log_file;
  std::string pid_file;
  LogLevel log_level = LogLevel::kInfo;
  EmbeddedCluster::Options cluster;
  client::Mount::Options mount;
  std::string metrics;  // canonical HTTP addresses, or empty
  std::string web;
};

// CLI11 would write "places(1x)".
class HelpText final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: weirfs [OPTIONS] --data DIR MNT\n"
           "       weirfs [OPTIONS] ENDPOINT[:/SUBTREE] MNT\n";
  }
  std::string make_positionals(const CLI::App* /*app*/) const override { return ""; }
};

void Declare(CLI::App& app, Arguments& arguments) {
  app.formatter(std::make_shared<HelpText>());
  app.footer(
      std::string(kDiskSpecHelp) +
      "\n\nOptions behind -o: class=NAME, client=NAME (as rules call this mount), ro, allow_other, "
      "timeout=S,\n[no]writeback_cache (the kernel's, which knows no classes; on with --data), "
      "data=DIR, noatime,\nnodiratime, strictatime (else access times move as by relatime), "
      "and what mount(8)\nand fstab give every filesystem. It returns once the mount is usable; "
      "umount "
      "ends it.\n\n"
      "Example:\n"
      "  weirfs --data /srv/weir /mnt/weir                    all in one process, on an image "
      "file\n"
      "  weirfs --data /srv/weir --disk /dev/sdb /mnt/weir    the same on a raw disk\n"
      "  weirfs --data /srv/weir --disk hdd:20GiB /mnt/weir   the same on an emulated disk\n"
      "  weirfs --data /srv/weir --tier-disk ssd=/dev/nvme0n1,hdd=/dev/sdb /mnt/weir\n"
      "  weirfs tcp://10.0.0.1:7370:/projects /mnt/p -o class=gold,ro\n"
      "  mount -t fuse.weirfs 10.0.0.1:/projects /mnt/p -o _netdev");
  app.add_option("places", arguments.places, "[ENDPOINT[:/SUBTREE]] MNT")
      ->required()
      ->expected(1, 2)
      ->type_name("");
  app.add_option("--data", arguments.data, "everything in this process, with its files in DIR")
      ->type_name("DIR");
  app.add_option("--osds", arguments.osds, "with --data: OSDs on image files, at first use (1)")
      ->type_name("N");
  app.add_option("--osd-size", arguments.osd_size, "with --data: of each image (8GiB or what fits)")
      ->type_name("SIZE");
  app.add_option("--disk", arguments.disks,
                 "with --data: an OSD on this raw or emulated disk; repeatable")
      ->type_name("DISK");
  app.add_option("--tier-disk", arguments.tier_disks,
                 "with --data: an OSD of several disks, fastest first; repeatable")
      ->type_name("NAME=DISK,NAME=DISK...");
  app.add_option("--token-rate", arguments.token_rate,
                 "with --data: global token rate of each OSD (default: measured at first use)")
      ->type_name("RATE");
  app.add_option("-o", arguments.option_lists, "mount options")->type_name("OPTIONS");
  app.add_flag("-f", arguments.foreground, "stay in the foreground");
  app.add_option("--log", arguments.log, "trace, debug, info, warn, error or off")
      ->type_name("LEVEL");
  app.add_option("--log-file", arguments.log_file, "where (default: DIR/weirfs.log, or nowhere)")
      ->type_name("PATH");
  app.add_option("--metrics", arguments.metrics,
                 "serve metrics for Prometheus at http://ADDR:PORT/metrics")
      ->type_name("ADDR:PORT");
  app.add_option("--web", arguments.web,
                 "with --data: a page with live charts of every class at http://ADDR:PORT/")
      ->type_name("ADDR:PORT");
  app.add_flag("--insecure", arguments.insecure,
               "let --metrics and --web be reached from other machines");
  app.add_flag("--replace", arguments.replace,
               "take the place of a WeirFS mounted there: files that are open stay with the old\n"
               "process, which ends with the last of them");
  app.add_option("--pid-file", arguments.pid_file, "written once the mount is usable")
      ->type_name("PATH");
}

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
  cluster.osds = arguments.osds;
  if (arguments.osds > kMostOsds) {
    return {ErrorCode::kInvalid, fmt::format("--osds {}: at most {}", arguments.osds, kMostOsds)};
  }
  for (const std::string& disk : arguments.disks) {
    WEIR_ASSIGN_OR_RETURN(const std::string place, AbsoluteDisk(disk));
    cluster.disks.push_back(place);
  }
  for (const std::string& list : arguments.tier_disks) {
    WEIR_ASSIGN_OR_RETURN(std::vector<TierSpec> tiers, ParseTierDisks(list));
    for (TierSpec& tier : tiers) {
      WEIR_ASSIGN_OR_RETURN(tier.disk, AbsoluteDisk(tier.disk));
    }
    cluster.tiers.push_back(FormatTierDisks(tiers));
  }
  if (!arguments.osd_size.empty()) {
    WEIR_ASSIGN_OR_RETURN(cluster.osd_size,
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
      !arguments.tier_disks.empty() || !arguments.token_rate.empty()) {
    return {ErrorCode::kInvalid,
            "--osds, --osd-size, --disk, --tier-disk and --token-rate go with --data"};
  }
  const Source source = SplitSource(arguments.places.front());
  WEIR_ASSIGN_OR_RETURN(const net::Endpoint endpoint, net::ParseEndpoint(source.endpoint));
  plan->mds_endpoint = endpoint.ToString();
  plan->mount.subtree = source.subtree;
  plan->mount.fsname = arguments.places.front();
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

Result<Plan> MakePlan(const Arguments& arguments) {
  Plan plan;
  MountOptions options;
  for (const std::string& list : arguments.option_lists) {
    WEIR_RETURN_IF_ERROR(AddMountOptions(list, geteuid() == 0, &options));
  }
  WEIR_ASSIGN_OR_RETURN(plan.log_level, ParseLogLevel(arguments.log));
  if (!arguments.log_file.empty()) plan.log_file = cli::AbsolutePath(arguments.log_file);
  if (!arguments.pid_file.empty()) plan.pid_file = cli::AbsolutePath(arguments.pid_file);
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
  mount.exclusive = plan.embedded;
  mount.writeback_cache = options.writeback_cache.value_or(plan.embedded);
  mount.timeout = options.timeout.value_or(Duration::max());
  mount.fuse_options = options.kernel_flags;
  if (arguments.replace && plan.embedded) {
    return Status(ErrorCode::kInvalid,
                  "--replace is for mounts of a cluster: with --data, umount the old one first");
  }
  mount.replace = arguments.replace;
  WEIR_ASSIGN_OR_RETURN(plan.mountpoint,
                        PrepareMountpoint(arguments.places.back(), arguments.replace));
  plan.cluster.mountpoint = plan.mountpoint;
  return plan;
}

// SIGTERM, SIGINT and SIGHUP end the mount; SIGUSR1 ends the thread that waits for them. Blocked
// before any thread starts, so that they reach nobody else.
sigset_t EndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set, signal);
  return set;
}

void StopOnSignal(client::Mount& mount) {
  const sigset_t set = EndingSignals();
  for (int signal = 0; sigwait(&set, &signal) == 0;) {
    if (signal == SIGUSR1) return;
    WEIR_LOG_INFO("signal {}: unmounting", signal);
    mount.Stop();
  }
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

Status Serve(const Plan& plan, Background& background) {
  const std::unique_ptr<net::Network> network = net::MakeZmqNetwork();
  std::unique_ptr<EmbeddedCluster> cluster;
  if (plan.embedded) {
    WEIR_ASSIGN_OR_RETURN(cluster, EmbeddedCluster::Start(*network, plan.cluster));
  }
  WEIR_ASSIGN_OR_RETURN(auto mount,
                        client::Mount::Start(*network, SystemClock::Get(), plan.mds_endpoint,
                                             plan.mountpoint, plan.mount));
  WEIR_ASSIGN_OR_RETURN(auto monitor, StartMonitor(*network, plan, cluster.get(), *mount));
  if (!plan.pid_file.empty()) {
    WEIR_RETURN_IF_ERROR(cli::WriteFileAtomically(plan.pid_file, std::to_string(getpid()) + "\n"));
  }
  WEIR_LOG_INFO("mounted on {}", plan.mountpoint);
  background.Announce(Status::Ok());
  std::thread signals([&] { StopOnSignal(*mount); });
  Status ended = mount->Wait();
  pthread_kill(signals.native_handle(), SIGUSR1);
  signals.join();
  monitor.reset();
  mount.reset();
  if (cluster != nullptr) {
    if (Status status = cluster->Stop(); ended.ok()) ended = status;
  }
  WEIR_LOG_INFO("unmounted {}", plan.mountpoint);
  return ended;
}

int Run(const Arguments& arguments) {
  auto plan = MakePlan(arguments);
  if (!plan.ok()) return cli::Fail("weirfs", plan.status());
  if (plan->embedded) {
    // What an embedded cluster writes is its owner's; and its log needs DIR before we fork.
    umask(S_IRWXG | S_IRWXO);
    std::error_code error;
    std::filesystem::create_directories(plan->cluster.dir, error);
    if (error) {
      return cli::Fail("weirfs", Status::FromErrno(error.value(), fmt::format("cannot make '{}'",
                                                                              plan->cluster.dir)));
    }
  }
  const sigset_t blocked = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  signal(SIGPIPE, SIG_IGN);
  CloseInheritedFiles();
  auto background = arguments.foreground ? Result<Background>(Background::Stay())
                                         : Background::Leave(plan->log_file);
  if (!background.ok()) return cli::Fail("weirfs", background.status());
  const std::string log_file = arguments.foreground ? arguments.log_file : "";
  Status status = InitLogging({.level = plan->log_level, .file = log_file, .program = "weirfs"});
  if (status.ok()) status = Serve(*plan, *background);
  if (status.ok()) return 0;
  background->Announce(status);
  return static_cast<int>(cli::ExitCodeOf(status));
}

}  // namespace
}  // namespace weir::weirfs

int main(int argc, char** argv) {
  weir::TakeShortTurns();
  CLI::App app("weirfs: mounts a WeirFS", "weirfs");
  weir::weirfs::Arguments arguments;
  weir::weirfs::Declare(app, arguments);
  if (const auto ended = weir::cli::Parse(app, argc, argv)) return *ended;
  return weir::weirfs::Run(arguments);
}
