// weir-mds: the metadata server as a daemon.
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/result.h"
#include "common/base/service_manager.h"
#include "common/base/short_turns.h"
#include "common/base/system_user.h"
#include "common/disk/data_directory.h"
#include "common/monitor/http_server.h"
#include "common/monitor/monitor.h"
#include "common/net/resolve.h"
#include "common/reactor/reactor.h"
#include "common/reactor/watchdog.h"
#include "mds/service/fsck_mds.h"
#include "mds/service/mds_core.h"
#include "mds/service/mds_server.h"
#include "mds/service/mds_store.h"
#include "tools/cli/parse.h"
#include "tools/cli/program.h"
#include "tools/cli/program_config.h"
#include "tools/cli/starter.h"
#include "tools/cli/version.h"

namespace weir::mds {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kUnhealthy = 7;
constexpr uint64_t kLeastFiles = 256;  // of its own some 40; each mount and OSD adds a few

// What is no setting.
struct Arguments {
  std::string fsck, output = "text";
  bool repair = false;
};

struct ServeOptions {
  std::string data;
  std::vector<std::string> listen;  // canonical endpoints
  std::string metrics, web;         // canonical HTTP addresses, or empty
};

// Where the daemon asks itself what it shows.
constexpr const char* kSelf = "inproc://mds";
// systemctl edit weir-mds.
constexpr const char* kWhereServicesWrite =
    " (a service may write below /var/lib/weirfs; elsewhere it needs ReadWritePaths=)";

int Fail(int code, const std::string& message) {
  cli::Say("weir-mds", message);
  return code;
}

std::vector<Setting> Schema() {
  return {
      {"mds.data", SettingType::kString, "", "directory of its data, made on first use"},
      {.name = "mds.listen",
       .type = SettingType::kList,
       .default_text = "tcp://127.0.0.1:7370",
       .help = "endpoint to serve: tcp://HOST:PORT, ipc://PATH; repeatable",
       .check = [](const std::string& text) { return net::ParseEndpoint(text).status(); }},
      {.name = "mds.insecure",
       .type = SettingType::kBool,
       .default_text = "false",
       .help = "listen beyond this machine although nobody is authenticated yet",
       .is_switch = true},
      {"mds.metrics", SettingType::kString, "",
       "serve metrics for Prometheus at http://ADDR:PORT/metrics (default: not)", "ADDR:PORT"},
      {"mds.web", SettingType::kString, "",
       "serve a page with live charts of every class at http://ADDR:PORT/ (default: not)",
       "ADDR:PORT"},
      {.name = "mds.log",
       .default_text = "info",
       .help = "trace, debug, info, warn, error or off",
       .check = cli::CheckLogLevel},
  };
}

// Locked, and what it is: new ones are recorded as such before anything is made in them.
Result<DataRecord> TakeDirectory(const std::string& directory, std::optional<LockFile>* lock) {
  WEIR_RETURN_IF_ERROR(LookAtDirectory(directory, DataOwner::kWeirMds).status());
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    const bool forbidden = error.value() == EROFS;  // by ProtectSystem=, as a rule
    return Status::FromErrno(
        error.value(), "cannot make '" + directory + "'" + (forbidden ? kWhereServicesWrite : ""));
  }
  auto taken = LockFile::Take(directory + "/lock");
  if (!taken.ok()) return Status(taken.code(), directory + " is " + taken.status().message());
  lock->emplace(*std::move(taken));
  WEIR_ASSIGN_OR_RETURN(DataRecord record, LookAtDirectory(directory, DataOwner::kWeirMds));
  if (record.state == DataState::kNew) {
    record.state = DataState::kMaking;
    WEIR_RETURN_IF_ERROR(WriteRecord(directory, record));
  }
  return record;
}

// Once the cluster is founded, or the first time after an earlier version.
Status RecordCluster(const std::string& directory, DataRecord record, MdsServer& server) {
  const std::string cluster = server.core().keeper().map()->cluster_uuid;
  if (record.state == DataState::kWhole && record.cluster == cluster) return Status::Ok();
  record.cluster = cluster;
  record.state = DataState::kWhole;
  return WriteRecord(directory, record);
}

// Until it is to end; SIGHUP is that, too, where there is no file to read again.
void WaitForEnd(int signals, cli::ProgramConfig& settings) {
  for (;;) {
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) < 0) continue;  // EINTR
    if (info.ssi_signo == SIGHUP && !settings.file().empty()) {
      settings.Reload();
      continue;
    }
    ServiceManager::Stopping();
    WEIR_LOG_INFO("signal {}: ending", info.ssi_signo);
    return;
  }
}

Status Serve(const ServeOptions& arguments, int signals, cli::ProgramConfig& settings) {
  std::optional<LockFile> lock;
  const Result<DataRecord> taken = TakeDirectory(arguments.data, &lock);
  if (!taken.ok()) return taken.status().Annotate(settings.config().Where("mds.data"));
  const DataRecord& record = *taken;
  MdsStoreOptions options;
  options.make = record.state != DataState::kWhole;
  options.cluster = record.cluster;
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<MdsStore> store,
                        OpenMdsStore(arguments.data, options));
  Reactor::Options loop;
  loop.name = "net";
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Reactor> reactor, Reactor::Create(loop));
  reactor->Start();
  const std::unique_ptr<net::Network> network = net::MakeNetwork(reactor.get());
  {
    std::vector<std::string> listen = arguments.listen;
    const bool watched = !arguments.metrics.empty() || !arguments.web.empty();
    if (watched) listen.emplace_back(kSelf);
    MdsOptions serving;
    const bool is_service = IsSystemUser(geteuid());  // what it founds is root's
    serving.ns.maker_uid = is_service ? 0 : geteuid();
    serving.ns.maker_gid = is_service ? 0 : getegid();
    serving.on_open = [&store] { return store->Keep(); };
    auto started = MdsServer::Start(*store, *network, SystemClock::Get(), listen, serving);
    if (started.code() == ErrorCode::kBusy) {  // an endpoint is another's
      return started.status().Annotate(settings.config().Where("mds.listen"));
    }
    WEIR_RETURN_IF_ERROR(started.status());
    const std::unique_ptr<MdsServer>& server = *started;
    monitor::MonitorOptions watch;
    watch.metrics = arguments.metrics;
    watch.web = arguments.web;
    watch.program = "weir-mds";
    watch.mds = kSelf;
    WEIR_ASSIGN_OR_RETURN(const auto monitor,
                          monitor::Monitor::Start(*network, SystemClock::Get(), watch));
    WEIR_RETURN_IF_ERROR(RecordCluster(arguments.data, record, *server));
    WEIR_RETURN_IF_ERROR(
        WriteFileAtomically(arguments.data + "/endpoint", server->endpoints().front() + "\n"));
    WEIR_LOG_INFO("serving {} at {}", arguments.data, server->endpoints().front());
    const Watchdog watchdog(*reactor, SystemClock::Get(), ServiceManager::AliveEvery());
    ServiceManager::Ready("serving at " + server->endpoints().front());
    WaitForEnd(signals, settings);
  }
  return Status::Ok();
}

// A canonical endpoint.
Result<std::string> ListenAt(const std::string& text, const Config& config) {
  WEIR_ASSIGN_OR_RETURN(const net::Endpoint endpoint, net::ParseEndpoint(text));
  const std::string canonical = endpoint.ToString();
  if (config.Bool("mds.insecure")) return canonical;
  const Result<bool> here = net::IsOfThisMachineOnly(endpoint);
  if (!here.ok()) return here.status().Annotate("cannot listen on " + canonical);
  if (*here) return canonical;
  return {ErrorCode::kInvalid,
          "will not listen on " + canonical +
              ": it is reachable from other machines and clients have no keys yet (use 127.0.0.1 "
              "or ipc://, or --insecure on a trusted network)"};
}

Result<std::string> HttpAt(const std::string& name, const Config& config) {
  const std::string& text = config.String(name);
  if (text.empty()) return text;
  return monitor::ParseHttpAddress(config.Where(name), text, config.Bool("mds.insecure"));
}

Status CheckData(const Config& config) {
  if (!config.String("mds.data").empty()) return Status::Ok();
  return {ErrorCode::kInvalid, "where is its data? (--data DIR, or data = \"DIR\" below [mds])"};
}

Result<ServeOptions> OptionsOf(const Config& config) {
  WEIR_RETURN_IF_ERROR(CheckData(config));
  ServeOptions options;
  options.data = config.String("mds.data");
  for (const std::string& text : config.List("mds.listen")) {
    Result<std::string> endpoint = ListenAt(text, config);
    if (!endpoint.ok()) return endpoint.status().Annotate(config.Where("mds.listen"));
    options.listen.push_back(*std::move(endpoint));
  }
  WEIR_ASSIGN_OR_RETURN(options.metrics, HttpAt("mds.metrics", config));
  WEIR_ASSIGN_OR_RETURN(options.web, HttpAt("mds.web", config));
  return options;
}

void AddFsck(CLI::App& app, Arguments* arguments) {
  auto* fsck = app.add_flag("--fsck{names}", arguments->fsck,
                            "check the data of an MDS that does not run, then exit: 0 clean, 7 "
                            "damaged; --fsck=deep verifies every table too");
  fsck->check(CLI::IsMember({"names", "deep"}));
  app.add_flag("--repair", arguments->repair, "--fsck: mend what follows from the names")
      ->needs(fsck);
  app.add_option("-o,--output", arguments->output, "--fsck: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->needs(fsck);
}

int RunFsck(const std::string& data, const Arguments& arguments) {
  FsckOptions options;
  options.deep = arguments.fsck == "deep";
  options.repair = arguments.repair;
  const Result<CheckReport> report = FsckMds(data, options);
  if (!report.ok()) return Fail(kFailed, report.status().message());
  std::fputs((arguments.output == "json" ? ToJson(*report) : ToText(*report)).c_str(), stdout);
  return report->findings.clean() ? 0 : kUnhealthy;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  cli::ProgramConfig settings(
      {.program = "weir-mds", .table = "mds", .schema = Schema(), .check = [](const Config& c) {
         return OptionsOf(c).status();
       }});
  CLI::App app{"weir-mds: the metadata server: namespace, cluster map, classes, admission",
               "weir-mds"};
  app.set_version_flag("--version", cli::VersionText("weir-mds"));
  app.footer(
      "Example:\n"
      "  weir-mds --data /var/lib/weir/mds --listen tcp://127.0.0.1:7370\n"
      "  weir-mds --fsck --data /var/lib/weir/mds");
  settings.AddSettingFlags(app);
  settings.AddFileFlags(app);
  AddFsck(app, &arguments);
  if (const auto ended = cli::Parse(app, argc, argv)) return *ended;
  if (const auto ended = settings.Load()) return *ended;
  const Config& config = settings.config();
  if (!arguments.fsck.empty()) {
    const Status data = CheckData(config);
    return data.ok() ? RunFsck(config.String("mds.data"), arguments)
                     : Fail(kBadUsage, data.message());
  }
  const Result<ServeOptions> options = OptionsOf(config);
  if (!options.ok()) {
    const bool bad = options.code() == ErrorCode::kInvalid;
    return Fail(bad ? kBadUsage : kFailed, options.status().message());
  }
  const Result<LogLevel> level = ParseLogLevel(config.String("mds.log"));
  if (!level.ok()) return Fail(kBadUsage, level.status().message());
  LogOptions logging;
  logging.level = *level;
  logging.program = "weir-mds";
  const Status logs = InitLogging(logging);
  if (!logs.ok()) return Fail(kFailed, logs.message());

  if (const Status files = cli::NeedFiles(kLeastFiles); !files.ok()) {
    return Fail(kFailed, files.message());
  }
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);  // before any thread, so that all inherit it
  ::signal(SIGPIPE, SIG_IGN);
  const int signals = ::signalfd(-1, &set, SFD_CLOEXEC);
  if (signals < 0) return Fail(kFailed, Status::FromErrno(errno, "signalfd").message());
  cli::Starter::Take().Watch();
  const Status served = Serve(*options, signals, settings);
  ::close(signals);
  if (!served.ok()) return Fail(kFailed, served.message());
  return 0;
}

}  // namespace
}  // namespace weir::mds

int main(int argc, char** argv) {
  return weir::cli::RunProgram("weir-mds", [=] {
    weir::cli::SetThisBuild();
    weir::TakeShortTurns();
    return weir::mds::Main(argc, argv);
  });
}
