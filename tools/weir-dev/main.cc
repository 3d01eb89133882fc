// weir-dev: a real multi-process cluster on this machine, to develop and test with.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/base/units.h"
#include "common/disk/disk_spec.h"
#include "common/disk/tier_spec.h"
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

struct Arguments {
  std::string dir, osd_size, daemon;
  std::vector<std::string> mount_options;
  std::string output = "table";
  DevCluster::UpOptions up;
  std::function<Result<ExitCode>(const Arguments&)> action;
};

Status CheckDisk(const std::string& disk, uint64_t smallest) {
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk));
  if (spec.path.empty() && spec.image_size < smallest) {
    return {ErrorCode::kInvalid, fmt::format("--disk {}: at least {}", disk, FormatSize(smallest))};
  }
  return Status::Ok();
}

Result<ExitCode> RunUp(const Arguments& arguments) {
  constexpr uint64_t kSmallestOsd = 256ull << 20;
  constexpr size_t kMostOsds = 256;
  DevCluster::UpOptions options = arguments.up;
  if (!arguments.osd_size.empty()) {
    WEIR_ASSIGN_OR_RETURN(options.osd_size,
                          cli::SizeValue("--osd-size", arguments.osd_size, kSmallestOsd));
  }
  if (options.osds > kMostOsds) {
    return {ErrorCode::kInvalid, fmt::format("--osds {}: at most {}", options.osds, kMostOsds)};
  }
  options.mount_options = fmt::format("{}", fmt::join(arguments.mount_options, ","));
  if (!options.mount_options.empty() && options.mounts.empty()) {
    return {ErrorCode::kInvalid, "-o goes with --mount: it holds for the mounts that are named"};
  }
  for (const std::string& disk : options.disks) {
    WEIR_RETURN_IF_ERROR(CheckDisk(disk, kSmallestOsd));
  }
  for (const std::string& list : options.tiers) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<TierSpec> tiers, ParseTierDisks(list));
    for (const TierSpec& tier : tiers) {
      const Status checked = CheckDisk(tier.disk, kSmallestOsd);
      if (!checked.ok()) return checked.Annotate("--tier-disk " + tier.name);
    }
  }
  if (!options.token_rate.empty()) {
    if (auto rate = cli::RateValue("--token-rate", options.token_rate); !rate.ok()) {
      return rate.status();
    }
  }
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
  up->add_option("--osds", arguments.up.osds, "OSDs on image files (1)")->type_name("N");
  up->add_option("--osd-size", arguments.osd_size, "of each image file (8GiB, sparse)")
      ->type_name("SIZE");
  up->add_option("--disk", arguments.up.disks,
                 "an OSD on this raw or emulated disk (hdd:20GiB); repeat for more")
      ->type_name("DISK");
  up->add_option("--tier-disk", arguments.up.tiers,
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
