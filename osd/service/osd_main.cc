// weir-osd: serves one raw disk, or formats it first (--mkfs).
//
// Exit codes: 0 done, 1 failed, 2 bad usage, 6 no contact to the MDS, 7 --fsck found damage.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "common/base/log.h"
#include "common/base/short_turns.h"
#include "common/base/units.h"
#include "common/config/config.h"
#include "common/disk/block_device.h"
#include "common/disk/disk_spec.h"
#include "common/disk/tier_spec.h"
#include "common/monitor/http_server.h"
#include "common/net/resolve.h"
#include "osd/service/daemon.h"
#include "osd/store/store_check.h"
#include "tools/cli/parse.h"
#include "tools/cli/program.h"
#include "tools/cli/program_config.h"
#include "tools/cli/starter.h"
#include "tools/cli/version.h"

namespace weir::osd {
namespace {

constexpr int kUsage = 2;
constexpr int kUnhealthy = 7;
constexpr uint64_t kLeastMemory = 64 << 20;
constexpr uint64_t kLeastFiles = 256;  // of its own some 60; each mount and daemon adds two

// What is no setting.
struct Flags {
  bool mkfs = false;
  bool force = false;
  std::string fsck, output = "text";
  bool repair = false;
};

Status CheckEndpoint(const std::string& text) {
  return net::ParseEndpoint(text).status();
}

Status CheckMemory(const std::string& text) {
  WEIR_ASSIGN_OR_RETURN(const uint64_t memory, ParseSize(text));
  if (memory >= kLeastMemory) return Status::Ok();
  return {ErrorCode::kInvalid, "'" + text + "' is too little: it must be at least 64MiB"};
}

std::vector<Setting> Schema() {
  return {
      {"osd.disk", SettingType::kString, "",
       "block device, image file or emulated disk, see below"},
      {"osd.tier_disk", SettingType::kString, "",
       "instead of a disk, several: NAME=DISK,NAME=DISK..., fastest first"},
      {.name = "osd.mds", .help = "endpoint of the MDS", .check = CheckEndpoint},
      {.name = "osd.listen",
       .default_text = "tcp://127.0.0.1:0",
       .help = "where to serve",
       .check = CheckEndpoint},
      {.name = "osd.insecure",
       .type = SettingType::kBool,
       .default_text = "false",
       .help = "listen beyond this machine although there are no keys yet",
       .is_switch = true},
      {.name = "osd.memory",
       .type = SettingType::kSize,
       .default_text = "512MiB",
       .help = "caches and requests under way, half each",
       .check = CheckMemory},
      {"osd.token_rate", SettingType::kRate, "0", "--mkfs: global token rate; 0: measure"},
      {"osd.size", SettingType::kSize, "0", "--mkfs: make an image file of this size"},
      {"osd.pid_file", SettingType::kString, "", "holds the process id while it runs"},
      {"osd.ready_file", SettingType::kString, "", "holds the endpoint once registered"},
      {"osd.meter_background", SettingType::kBool, "true",
       "flushes and compactions are a class of the pipeline; false only to compare"},
      {"osd.metrics", SettingType::kString, "",
       "ADDR:PORT: serve metrics for Prometheus at http://ADDR:PORT/metrics"},
      {"osd.metering", SettingType::kBool, "true",
       "false: requests go past the pipeline, no contract holds; only to measure its cost"},
      {"osd.metering_switch", SettingType::kBool, "false",
       "true: SIGUSR1 lets requests go past the pipeline, SIGUSR2 meters them again"},
      {"osd.decision_log", SettingType::kString, "",
       "keep all that moved the scheduler in this new file, for `weir-sim replay` (not with "
       "tiers)"},
      {.name = "osd.log",
       .default_text = "info",
       .help = "trace, debug, info, warn, error or off",
       .check = cli::CheckLogLevel},
  };
}

void AddFlags(CLI::App& app, cli::ProgramConfig& settings, Flags* flags) {
  app.set_version_flag("--version", cli::VersionText("weir-osd"));
  app.add_flag("--mkfs", flags->mkfs, "format the disk as a new OSD, then exit");
  app.add_flag("--force", flags->force, "--mkfs: overwrite whatever the disk holds");
  auto* fsck = app.add_flag("--fsck{space}", flags->fsck,
                            "check a disk that is not in use, then exit: 0 clean, 7 damaged; "
                            "--fsck=deep also reads everything and compares checksums");
  fsck->check(CLI::IsMember({"space", "deep"}));
  app.add_flag("--repair", flags->repair, "--fsck: mend what can be without losing anything")
      ->needs(fsck);
  app.add_option("-o,--output", flags->output, "--fsck: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->needs(fsck);
  settings.AddFileFlags(app);
  settings.AddSettingFlags(app);
  app.footer(std::string(kDiskSpecHelp) +
             "\n\nExample:\n"
             "  weir-osd --mkfs --disk /dev/sdb --mds tcp://10.0.0.1:7370\n"
             "  weir-osd --disk /dev/sdb --mds tcp://10.0.0.1:7370\n"
             "  weir-osd --fsck=deep --disk /dev/sdb\n"
             "  weir-osd --mkfs --disk hdd:/srv/osd.img,rate=100MB/s --size 20GiB --mds "
             "tcp://10.0.0.1:7370\n"
             "  weir-osd --mkfs --tier-disk ssd=/dev/nvme0n1,hdd=/dev/sdb --mds "
             "tcp://10.0.0.1:7370");
}

int Fail(int code, const std::string& message) {
  cli::Say("weir-osd", message);
  return code;
}

int Fail(const Status& status) {
  const bool no_contact =
      status.code() == ErrorCode::kUnreachable || status.code() == ErrorCode::kTimedOut;
  return Fail(no_contact ? 6 : 1, status.message());
}

bool IsEverywhere(const net::Endpoint& endpoint) {
  return endpoint.address == "0.0.0.0" || endpoint.address == "::" || endpoint.address == "*";
}

Status CheckListen(const net::Endpoint& listen, bool insecure) {
  const std::string text = listen.ToString();
  if (IsEverywhere(listen) && insecure) {
    return {ErrorCode::kInvalid,
            "cannot listen at " + text +
                ": name the one address at which clients reach this OSD, it goes into the map"};
  }
  if (insecure) return {};
  const Result<bool> here = net::IsOfThisMachineOnly(listen);
  if (!here.ok()) return here.status().Annotate("cannot listen at " + text);
  if (*here) return {};
  return {ErrorCode::kInvalid,
          "will not listen at " + text +
              ": it can be reached from other machines, and there are no keys yet to tell friend "
              "from foe (listen at 127.0.0.1, or say --insecure on a network you trust)"};
}

// The disk itself: an emulated one at the speed of its image.
int RunFsck(const Flags& flags, const DiskSpec& disk) {
  const auto device =
      OpenDevice(disk.path, {.read_only = !flags.repair, .direct = !disk.emulated()});
  if (!device.ok()) return Fail(device.status());
  const Result<CheckReport> report =
      CheckStore(**device, {.deep = flags.fsck == "deep", .repair = flags.repair});
  if (!report.ok()) return Fail(report.status());
  std::fputs((flags.output == "json" ? ToJson(*report) : ToText(*report)).c_str(), stdout);
  return report->findings.clean() ? 0 : kUnhealthy;
}

Status CheckPlace(const std::string& disk) {
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk));
  if (!spec.path.empty()) return {};
  return {ErrorCode::kInvalid,
          disk + ": name the image here (hdd:PATH; with --mkfs --size SIZE makes it)"};
}

Result<std::vector<TierSpec>> TiersOf(const std::string& list) {
  WEIR_ASSIGN_OR_RETURN(std::vector<TierSpec> tiers, ParseTierDisks(list));
  for (const TierSpec& tier : tiers) WEIR_RETURN_IF_ERROR(CheckPlace(tier.disk));
  return tiers;
}

// The tiers, none of an OSD with one disk.
Result<std::vector<TierSpec>> DisksOf(const Config& config) {
  const std::string& disk = config.String("osd.disk");
  const std::string& list = config.String("osd.tier_disk");
  if (disk.empty() && list.empty()) {
    return Status(ErrorCode::kInvalid,
                  "which disk? (--disk PATH, or disk = \"PATH\" below [osd]; of tiers --tier-disk, "
                  "or tier_disk)");
  }
  if (disk.empty()) {
    auto tiers = TiersOf(list);
    if (!tiers.ok()) return tiers.status().Annotate(config.Where("osd.tier_disk"));
    return tiers;
  }
  if (!list.empty()) {
    return Status(ErrorCode::kInvalid,
                  fmt::format("{} = {} and {} = {}: one disk or several, not both",
                              config.Where("osd.disk"), config.Toml("osd.disk"),
                              config.Where("osd.tier_disk"), config.Toml("osd.tier_disk")));
  }
  WEIR_RETURN_IF_ERROR(CheckPlace(disk).Annotate(config.Where("osd.disk")));
  return std::vector<TierSpec>();
}

Result<net::Endpoint> MdsOf(const Config& config) {
  if (!config.String("osd.mds").empty()) return net::ParseEndpoint(config.String("osd.mds"));
  return Status(ErrorCode::kInvalid,
                "which MDS? (--mds ENDPOINT, or mds = \"ENDPOINT\" below [osd])");
}

// What serving wants; of the disks only how they are written.
Result<DaemonOptions> ServeOptions(const Config& config) {
  DaemonOptions options;
  WEIR_ASSIGN_OR_RETURN(options.tiers, DisksOf(config));
  WEIR_ASSIGN_OR_RETURN(const net::Endpoint mds, MdsOf(config));
  WEIR_ASSIGN_OR_RETURN(const net::Endpoint listen,
                        net::ParseEndpoint(config.String("osd.listen")));
  options.disk = config.String("osd.disk");
  options.mds = mds.ToString();
  options.listen = listen.ToString();
  options.memory_bytes = config.Size("osd.memory");
  options.meter_background = config.Bool("osd.meter_background");
  options.metering = config.Bool("osd.metering");
  options.metering_switch = config.Bool("osd.metering_switch");
  options.decision_log = config.String("osd.decision_log");
  options.pid_file = config.String("osd.pid_file");
  options.ready_file = config.String("osd.ready_file");
  if (!options.decision_log.empty() && !options.tiers.empty()) {
    return Status(ErrorCode::kInvalid, config.Where("osd.decision_log") +
                                           ": it is for an OSD of one disk, not with --tier-disk");
  }
  const bool insecure = config.Bool("osd.insecure");
  WEIR_RETURN_IF_ERROR(CheckListen(listen, insecure).Annotate(config.Where("osd.listen")));
  if (const std::string& metrics = config.String("osd.metrics"); !metrics.empty()) {
    WEIR_ASSIGN_OR_RETURN(
        options.metrics, monitor::ParseHttpAddress(config.Where("osd.metrics"), metrics, insecure));
  }
  return options;
}

int RunMkfs(const Config& config, const Flags& flags, const std::vector<TierSpec>& tiers) {
  const Result<net::Endpoint> mds = MdsOf(config);
  if (!mds.ok()) return Fail(kUsage, mds.status().message());
  const auto found = net::Resolve(*mds);
  if (!found.ok()) return Fail(found.status());
  MkfsDaemonOptions options;
  options.disk = config.String("osd.disk");
  options.tiers = tiers;
  options.mds = mds->ToString();
  options.force = flags.force;
  options.token_rate = config.Rate("osd.token_rate");
  options.size = config.Size("osd.size");
  const Status status = Mkfs(options);
  if (status.ok()) return 0;
  const bool sought = status.code() == ErrorCode::kUnreachable;
  return Fail({status.code(), status.message() + (sought ? net::WhereItWasSought(*mds) : "")});
}

// A file may say how its OSD is made, and serve it later all the same.
int RunServe(cli::ProgramConfig& settings, const Flags& flags) {
  const Config& config = settings.config();
  if (flags.force || config.IsTyped("osd.size") || config.IsTyped("osd.token_rate")) {
    return Fail(kUsage,
                "--force, --size and --token-rate go with --mkfs "
                "(osdctl osd set changes the rate of a running OSD)");
  }
  Result<DaemonOptions> options = ServeOptions(config);
  if (!options.ok()) {
    return options.code() == ErrorCode::kInvalid ? Fail(kUsage, options.status().message())
                                                 : Fail(1, options.status().message());
  }
  if (!settings.file().empty()) options->on_hangup = [&settings] { settings.Reload(); };
  BlockSignals();  // a signal that comes while nothing is served yet ends the process
  const Status status = Serve(*options);
  return status.ok() ? 0 : Fail(status);
}

cli::ProgramConfig::Options SettingsOptions() {
  return {
      .program = "weir-osd", .table = "osd", .schema = Schema(), .check = [](const Config& config) {
        return ServeOptions(config).status();
      }};
}

int Run(cli::ProgramConfig& settings, const Flags& flags) {
  if (const auto ended = settings.Load()) return *ended;
  const Config& config = settings.config();
  const Result<std::vector<TierSpec>> tiers = DisksOf(config);
  if (!tiers.ok()) return Fail(kUsage, tiers.status().message());
  if (!flags.fsck.empty()) {
    if (!tiers->empty()) return Fail(kUsage, "--fsck checks one disk: name each with --disk");
    const Result<DiskSpec> disk = ParseDiskSpec(config.String("osd.disk"));
    return disk.ok() ? RunFsck(flags, *disk) : Fail(kUsage, disk.status().message());
  }
  const Status files = cli::NeedFiles(kLeastFiles);
  if (!files.ok()) return Fail(files);
  const Result<LogLevel> level = ParseLogLevel(config.String("osd.log"));
  if (!level.ok()) return Fail(kUsage, level.status().message());
  const Status logging = InitLogging({.level = *level, .file = {}, .program = "weir-osd"});
  if (!logging.ok()) return Fail(logging);
  cli::Starter::Take().Watch();
  return flags.mkfs ? RunMkfs(config, flags, *tiers) : RunServe(settings, flags);
}

}  // namespace
}  // namespace weir::osd

int main(int argc, char** argv) {
  return weir::cli::RunProgram("weir-osd", [=] {
    weir::cli::SetThisBuild();
    weir::TakeShortTurns();
    CLI::App app{"weir-osd: serves one raw disk to a WeirFS cluster, metering every class",
                 "weir-osd"};
    weir::osd::Flags flags;
    weir::cli::ProgramConfig settings(weir::osd::SettingsOptions());
    weir::osd::AddFlags(app, settings, &flags);
    if (const auto ended = weir::cli::Parse(app, argc, argv)) return *ended;
    return weir::osd::Run(settings, flags);
  });
}
