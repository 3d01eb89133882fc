// weir-mds: the metadata server as a daemon.
#include <sys/signalfd.h>
#include <unistd.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "common/base/files.h"
#include "common/base/freed_memory.h"
#include "common/base/log.h"
#include "common/base/result.h"
#include "common/base/service_manager.h"
#include "common/base/short_turns.h"
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
#include "tools/cli/starter.h"
#include "tools/cli/version.h"

namespace weir::mds {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kUnhealthy = 7;
constexpr uint64_t kLeastFiles = 256;  // of its own some 40; each mount and OSD adds a few

struct Arguments {
  std::string data;
  std::vector<std::string> listen;
  bool insecure = false;
  std::string config;
  std::string log = "info";
  std::string metrics;
  std::string web;
  std::string fsck, output = "text";
  bool repair = false;
};

// Where the daemon asks itself what it shows.
constexpr const char* kSelf = "inproc://mds";

int Fail(int code, const std::string& message) {
  cli::Say("weir-mds", message);
  return code;
}

// Flags win over the file, which wins over the defaults.
Status ReadConfig(Arguments* arguments, const CLI::App& app) {
  if (arguments->config.empty()) return Status::Ok();
  if (std::filesystem::is_directory(arguments->config)) {
    return {ErrorCode::kInvalid, "there is no configuration file '" + arguments->config + "'"};
  }
  try {
    const toml::table file = toml::parse_file(arguments->config);
    for (const auto& [key, value] : file) {
      const std::string name(key.str());
      if (name == "listen" && value.is_string()) {
        if (app.count("--listen") == 0) arguments->listen = {*value.value<std::string>()};
      } else if (name == "insecure" && value.is_boolean()) {
        if (app.count("--insecure") == 0) arguments->insecure = *value.value<bool>();
      } else if (name == "log" && value.is_string()) {
        if (app.count("--log") == 0) arguments->log = *value.value<std::string>();
      } else if (name == "metrics" && value.is_string()) {
        if (app.count("--metrics") == 0) arguments->metrics = *value.value<std::string>();
      } else if (name == "web" && value.is_string()) {
        if (app.count("--web") == 0) arguments->web = *value.value<std::string>();
      } else {
        return {
            ErrorCode::kInvalid,
            arguments->config + ":" + std::to_string(key.source().begin.line) + ": '" + name +
                "' is unknown or of the wrong type; there is listen, insecure, log, metrics, web"};
      }
    }
  } catch (const toml::parse_error& error) {
    return {ErrorCode::kInvalid, arguments->config + ":" +
                                     std::to_string(error.source().begin.line) + ": " +
                                     std::string(error.description())};
  }
  return Status::Ok();
}

// Locked, and what it is: new ones are recorded as such before anything is made in them.
Result<DataRecord> TakeDirectory(const std::string& directory, std::optional<LockFile>* lock) {
  WEIR_RETURN_IF_ERROR(LookAtDirectory(directory, DataOwner::kWeirMds).status());
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Status::FromErrno(error.value(), "creating " + directory);
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

Status Serve(const Arguments& arguments, int signals) {
  std::optional<LockFile> lock;
  WEIR_ASSIGN_OR_RETURN(const DataRecord record, TakeDirectory(arguments.data, &lock));
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
    serving.ns.maker_uid = geteuid();
    serving.ns.maker_gid = getegid();
    serving.on_open = [&store] { return store->Keep(); };
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<MdsServer> server,
                          MdsServer::Start(*store, *network, SystemClock::Get(), listen, serving));
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
    signalfd_siginfo info{};
    while (::read(signals, &info, sizeof info) < 0 && errno == EINTR) {
    }
    ServiceManager::Stopping();
    WEIR_LOG_INFO("signal {}: ending", info.ssi_signo);
  }
  return Status::Ok();
}

// Makes the endpoints canonical.
Status CheckListen(Arguments* arguments) {
  for (std::string& text : arguments->listen) {
    WEIR_ASSIGN_OR_RETURN(const net::Endpoint endpoint, net::ParseEndpoint(text));
    text = endpoint.ToString();
    if (arguments->insecure) continue;
    const Result<bool> here = net::IsOfThisMachineOnly(endpoint);
    if (!here.ok()) return here.status().Annotate("cannot listen on " + text);
    if (*here) continue;
    return {ErrorCode::kInvalid,
            "will not listen on " + text +
                ": it is reachable from other machines and clients have no keys yet (use 127.0.0.1 "
                "or ipc://, or --insecure on a trusted network)"};
  }
  return Status::Ok();
}

// Makes the addresses of --metrics and --web canonical.
Status CheckWatched(Arguments* arguments) {
  for (auto [option, address] :
       {std::pair("--metrics", &arguments->metrics), std::pair("--web", &arguments->web)}) {
    if (address->empty()) continue;
    WEIR_ASSIGN_OR_RETURN(*address,
                          monitor::ParseHttpAddress(option, *address, arguments->insecure));
  }
  return Status::Ok();
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

int RunFsck(const Arguments& arguments) {
  FsckOptions options;
  options.deep = arguments.fsck == "deep";
  options.repair = arguments.repair;
  const Result<CheckReport> report = FsckMds(arguments.data, options);
  if (!report.ok()) return Fail(kFailed, report.status().message());
  std::fputs((arguments.output == "json" ? ToJson(*report) : ToText(*report)).c_str(), stdout);
  return report->findings.clean() ? 0 : kUnhealthy;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"weir-mds: the metadata server: namespace, cluster map, classes, admission",
               "weir-mds"};
  app.set_version_flag("--version", cli::VersionText("weir-mds"));
  app.footer(
      "Example:\n"
      "  weir-mds --data /var/lib/weir/mds --listen tcp://127.0.0.1:7370\n"
      "  weir-mds --fsck --data /var/lib/weir/mds");
  app.add_option("--data", arguments.data, "directory of its data, made on first use")->required();
  app.add_option("--listen", arguments.listen,
                 "endpoint to serve: tcp://HOST:PORT, ipc://PATH (default tcp://127.0.0.1:7370)");
  app.add_flag("--insecure", arguments.insecure,
               "listen beyond this machine although nobody is authenticated yet");
  app.add_option("--metrics", arguments.metrics,
                 "serve metrics for Prometheus at http://ADDR:PORT/metrics (default: not)")
      ->type_name("ADDR:PORT");
  app.add_option("--web", arguments.web,
                 "serve a page with live charts of every class at http://ADDR:PORT/ (default: not)")
      ->type_name("ADDR:PORT");
  app.add_option("--config", arguments.config, "TOML file: listen, insecure, log, metrics, web");
  app.add_option("--log", arguments.log, "trace, debug, info, warn, error or off");
  AddFsck(app, &arguments);
  if (const auto ended = cli::Parse(app, argc, argv)) return *ended;
  if (!arguments.fsck.empty()) return RunFsck(arguments);
  const Status configured = ReadConfig(&arguments, app);
  if (!configured.ok()) return Fail(kBadUsage, configured.message());
  if (arguments.listen.empty()) arguments.listen = {"tcp://127.0.0.1:7370"};
  const Status listens = CheckListen(&arguments);
  if (!listens.ok()) {
    const bool bad = listens.code() == ErrorCode::kInvalid;
    return Fail(bad ? kBadUsage : kFailed, listens.message());
  }
  const Status watched = CheckWatched(&arguments);
  if (!watched.ok()) return Fail(kBadUsage, watched.message());
  const Result<LogLevel> level = ParseLogLevel(arguments.log);
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
  const Status served = Serve(arguments, signals);
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
    weir::KeepFreedMemory();
    return weir::mds::Main(argc, argv);
  });
}
