// weir-dev: a real multi-process cluster on this machine, to develop and test with.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/base/units.h"
#include "common/disk/disk_spec.h"
#include "common/disk/tier_spec.h"
#include "common/monitor/http_server.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/mounts.h"
#include "tools/cli/parse.h"
#include "tools/cli/program.h"
#include "tools/cli/table.h"
#include "tools/cli/values.h"
#include "tools/cli/version.h"
#include "tools/weir-dev/dev_cluster.h"

namespace weir::dev {
namespace {

using cli::ExitCode;

constexpr uint64_t kLeastFiles = 256;  // what its daemons need, each

struct Arguments {
  std::string dir, osd_size, daemon;
  std::vector<std::string> mount_options;
  std::string output = "table";
  DevCluster::UpOptions up;
  std::function<Result<ExitCode>(const Arguments&)> action;
};

Result<std::string> AbsoluteDisk(const std::string& disk, uint64_t smallest) {
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk));
  if (!spec.path.empty()) return WithPath(disk, cli::AbsolutePath(spec.path));
  if (spec.image_size >= smallest) return disk;
  return Status(ErrorCode::kInvalid,
                fmt::format("--disk {}: at least {}", disk, FormatSize(smallest)));
}

Result<ExitCode> RunUp(const Arguments& arguments) {
  constexpr uint64_t kSmallestOsd = 256ull << 20;
  constexpr size_t kMostOsds = 256;
  DevCluster::UpOptions options = arguments.up;
  if (!arguments.osd_size.empty()) {
    WEIR_ASSIGN_OR_RETURN(options.disks.osd_size,
                          cli::SizeValue("--osd-size", arguments.osd_size, kSmallestOsd));
  }
  if (options.disks.osds > kMostOsds) {
    return {ErrorCode::kInvalid,
            fmt::format("--osds {}: at most {}", options.disks.osds, kMostOsds)};
  }
  options.mount_options = fmt::format("{}", fmt::join(arguments.mount_options, ","));
  if (!options.mount_options.empty() && options.mounts.empty()) {
    return {ErrorCode::kInvalid, "-o goes with --mount: it holds for the mounts that are named"};
  }
  for (std::string& disk : options.disks.disks) {
    WEIR_ASSIGN_OR_RETURN(disk, AbsoluteDisk(disk, kSmallestOsd));
  }
  for (std::string& list : options.disks.tiers) {
    WEIR_ASSIGN_OR_RETURN(std::vector<TierSpec> tiers, ParseTierDisks(list));
    for (TierSpec& tier : tiers) {
      auto disk = AbsoluteDisk(tier.disk, kSmallestOsd);
      if (!disk.ok()) return disk.status().Annotate("--tier-disk " + tier.name);
      tier.disk = *std::move(disk);
    }
    list = FormatTierDisks(tiers);
  }
  if (!options.token_rate.empty()) {
    WEIR_ASSIGN_OR_RETURN(options.rate, cli::RateValue("--token-rate", options.token_rate));
  }
  if (!options.web.empty()) {
    WEIR_RETURN_IF_ERROR(monitor::ParseHttpAddress("--web", options.web, false).status());
  }
  WEIR_RETURN_IF_ERROR(cli::NeedFiles(kLeastFiles));
  WEIR_RETURN_IF_ERROR(DevCluster::Up(arguments.dir, options));
  return ExitCode::kDone;
}

struct Row {
  std::string name;
  cli::ProcessId process;
  bool serves = false;
  std::string where;
  std::string metrics;
};

std::vector<Row> RowsOf(const State& state) {
  std::vector<Row> rows;
  rows.push_back({"mds.0", state.mds, cli::IsAlive(state.mds), state.endpoint, state.metrics});
  for (size_t i = 0; i < state.osds.size(); ++i) {
    const OsdState& osd = state.osds[i];
    rows.push_back({fmt::format("osd.{}", i), osd.process, cli::IsAlive(osd.process),
                    osd.tiers.empty() ? osd.disk : osd.tiers, osd.metrics});
  }
  for (size_t i = 0; i < state.mounts.size(); ++i) {
    const MountState& mount = state.mounts[i];
    const bool serves =
        cli::IsAlive(mount.process) && cli::StateOfMount(mount.path) == cli::MountState::kAlive;
    rows.push_back({fmt::format("mnt.{}", i), mount.process, serves, mount.path, mount.metrics});
  }
  return rows;
}

Result<ExitCode> RunStatus(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(const State state, LoadState(cli::AbsolutePath(arguments.dir)));
  const std::vector<Row> rows = RowsOf(state);
  bool healthy = true;
  cli::Table table({"DAEMON", "STATE", ">PID", "WHERE", "METRICS"});
  nlohmann::ordered_json daemons = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    healthy = healthy && row.serves;
    const pid_t pid = row.serves ? row.process.pid : 0;
    table.AddRow({row.name, row.serves ? "up" : "DOWN", row.serves ? std::to_string(pid) : "-",
                  row.where, row.metrics.empty() ? "-" : row.metrics});
    daemons.push_back({{"name", row.name},
                       {"up", row.serves},
                       {"pid", pid},
                       {"where", row.where},
                       {"metrics", row.metrics}});
  }
  if (arguments.output == "json") {
    fmt::print("{}\n", nlohmann::ordered_json(
                           {{"version", 1}, {"endpoint", state.endpoint}, {"daemons", daemons}})
                           .dump());
  } else {
    fmt::print("{}", table.Render());
  }
  return healthy ? ExitCode::kDone : ExitCode::kUnhealthy;
}

Result<ExitCode> RunDown(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(DevCluster cluster, DevCluster::Open(arguments.dir));
  WEIR_RETURN_IF_ERROR(cluster.Down());
  return ExitCode::kDone;
}

template <Status (DevCluster::*kAct)(const DaemonName&)>
Result<ExitCode> RunOnOne(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(DevCluster cluster, DevCluster::Open(arguments.dir));
  WEIR_ASSIGN_OR_RETURN(const DaemonName name, ParseDaemon(cluster.state(), arguments.daemon));
  WEIR_RETURN_IF_ERROR((cluster.*kAct)(name));
  return ExitCode::kDone;
}

using Action = Result<ExitCode> (*)(const Arguments&);

CLI::App* AddVerb(CLI::App& app, Arguments& arguments, const char* name, const char* help,
                  Action action) {
  auto* verb = app.add_subcommand(name, help);
  verb->add_option("--dir", arguments.dir, "the cluster's directory")->required()->type_name("DIR");
  verb->footer(fmt::format("Example: weir-dev {} --dir /srv/weir", name));
  verb->callback([&arguments, action] { arguments.action = action; });
  return verb;
}

void Declare(CLI::App& app, Arguments& arguments) {
  app.require_subcommand(1);
  app.set_version_flag("--version", cli::VersionText("weir-dev"));
  app.footer(
      "Daemons are named mds.0, osd.0, osd.1 ... and mnt.0, mnt.1 ... in the order of --mount.\n"
      "Example: weir-dev up --dir /srv/weir --osds 3 --mount /mnt/weir\n"
      "         weir-dev kill --dir /srv/weir osd.1 && weir-dev start --dir /srv/weir osd.1\n"
      "         osdctl --cluster /srv/weir status\n"
      "         weir-dev down --dir /srv/weir");
  auto* up = AddVerb(app, arguments, "up", "start a cluster; returns when all of it serves", RunUp);
  up->add_option("--osds", arguments.up.disks.osds, "OSDs on image files (1)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  up->add_option("--osd-size", arguments.osd_size, "of each image file, allocated at once (8GiB)")
      ->type_name("SIZE");
  up->add_option("--disk", arguments.up.disks.disks,
                 "an OSD on this raw or emulated disk (hdd:20GiB); repeat for more")
      ->type_name("DISK");
  up->add_option("--tier-disk", arguments.up.disks.tiers,
                 "an OSD of several disks, fastest first; repeat for more")
      ->type_name("NAME=DISK,NAME=DISK...");
  up->footer(std::string(kDiskSpecHelp) +
             "\n\nExample: weir-dev up --dir /srv/weir --mount /mnt/weir\n"
             "         weir-dev up --dir /srv/weir --disk hdd:20GiB --disk "
             "ssd:4GiB,rate=200MB/s --mount /mnt/weir\n"
             "         weir-dev up --dir /srv/weir --tier-disk "
             "ssd=ssd:4GiB,hdd=hdd:20GiB --mount /mnt/weir");
  up->add_option("--mount", arguments.up.mounts, "mount here; repeat for more")->type_name("MNT");
  up->add_option("-o,--mount-options", arguments.mount_options,
                 "of each --mount, as weirfs takes them behind -o (allow_other,class=gold)")
      ->type_name("OPTIONS");
  up->add_option("--token-rate", arguments.up.token_rate,
                 "global token rate of each OSD (default: profiled at mkfs)")
      ->type_name("RATE");
  up->add_flag("--force", arguments.up.force,
               "at first use: format the disks that are named whatever they hold");
  up->add_flag("--metrics", arguments.up.metrics,
               "metrics for Prometheus from every daemon (weir-dev status says where)");
  up->add_option("--web", arguments.up.web, "the web page of weir-mds at this address")
      ->type_name("ADDR:PORT");
  auto* status =
      AddVerb(app, arguments, "status", "which daemons serve; exit 7 when one does not", RunStatus);
  status->add_option("-o,--output", arguments.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  AddVerb(app, arguments, "down", "unmount and stop all; the data stays", RunDown);
  const auto add_one = [&](const char* name, const char* help, Action action) {
    AddVerb(app, arguments, name, help, action)
        ->add_option("daemon", arguments.daemon, "osd.N, mds.0 or mnt.N")
        ->required()
        ->type_name("DAEMON");
  };
  add_one("kill", "SIGKILL one daemon", RunOnOne<&DevCluster::Kill>);
  add_one("stop", "SIGTERM one daemon and wait for its end", RunOnOne<&DevCluster::Stop>);
  add_one("start", "start one daemon; returns when it serves", RunOnOne<&DevCluster::Start>);
}

}  // namespace
}  // namespace weir::dev

int main(int argc, char** argv) {
  return weir::cli::RunProgram("weir-dev", [=] {
    CLI::App app("weir-dev: a real multi-process WeirFS cluster on this machine", "weir-dev");
    weir::dev::Arguments arguments;
    weir::dev::Declare(app, arguments);
    if (const auto ended = weir::cli::Parse(app, argc, argv)) return *ended;
    const auto code = arguments.action(arguments);
    if (!code.ok()) return weir::cli::Fail("weir-dev", code.status());
    return static_cast<int>(*code);
  });
}
