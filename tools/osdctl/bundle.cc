// osdctl bundle: what a bug report needs of a cluster, in one archive.

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/cli/files.h"
#include "tools/cli/process.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/log_names.h"
#include "tools/osdctl/version_document.h"

namespace weir::osdctl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLog = 8 << 20;  // bytes of the end of each
constexpr Duration kPatience = std::chrono::seconds(5);

struct BundleOptions {
  std::string file;
  bool names = false;
};

// A folder that is gone at the end.
class Scratch {
 public:
  static Result<Scratch> Make() {
    std::string path = (fs::temp_directory_path() / "weir-bundle-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return Status::FromErrno(errno, "making " + path);
    return Scratch(path);
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&&) = delete;
  [[nodiscard]] std::string At(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Status WriteJson(const std::string& path, const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) {
    return {ErrorCode::kBadMessage, "what the daemons answered is no text"};
  }
  return cli::WriteFileAtomically(path, text);
}

// One that does not answer is a line in `missing`.
Status Ask(ClusterLink& link, const std::string& folder, std::string* missing) {
  wire::StatusReply status;
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_STATUS, wire::Empty(), &status));
  WEIR_RETURN_IF_ERROR(WriteJson(folder + "/status.json", status));
  WEIR_ASSIGN_OR_RETURN(const std::vector<Built> all, AskBuilds(link));
  WEIR_RETURN_IF_ERROR(cli::WriteFileAtomically(folder + "/version.txt", VersionTable(all)));
  wire::ClassLoadReply load;
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_CLASS_LOAD, wire::Empty(), &load));
  WEIR_RETURN_IF_ERROR(WriteJson(folder + "/names.json", load));
  for (const wire::OsdInfo& osd : status.map().osds()) {
    wire::OsdStatsReply stats;
    const std::string name = fmt::format("osd.{}", osd.id());
    const Status asked =
        osd.up() ? link.CallOsd(osd, wire::OSD_STATS, wire::OsdStatsRequest(), &stats, kPatience)
                 : Status(ErrorCode::kUnreachable, "is down");
    if (!asked.ok()) {
      *missing += fmt::format("{}: {}\n", name, asked.message());
    } else {
      WEIR_RETURN_IF_ERROR(WriteJson(fmt::format("{}/{}.json", folder, name), stats));
    }
  }
  return {};
}

Status AddLog(const std::string& from, const std::string& to, bool names) {
  WEIR_ASSIGN_OR_RETURN(std::string text, cli::ReadFile(from));
  if (text.size() > kMostLog) text.erase(0, text.size() - kMostLog);
  return cli::WriteFileAtomically(to, names ? text : WithoutNames(text));
}

// Of daemons that systemd runs on this machine, and of a cluster in a directory.
Status AddLogs(const Globals& globals, const Scratch& scratch, const std::string& folder,
               const BundleOptions& options, std::string* missing) {
  const std::string journal = scratch.At("journal");
  const int read = cli::RunLogged({"journalctl", "--no-pager", "--since=-1d", "--output=short-iso",
                                   "--unit=weir-mds.service", "--unit=weir-osd@*.service"},
                                  journal);
  if (read == 0) {
    WEIR_RETURN_IF_ERROR(AddLog(journal, folder + "/journal.log", options.names));
  } else {
    *missing += "the journal of this machine: journalctl does not tell\n";
  }
  std::error_code none;
  // Where weir-dev has its daemons write.
  for (const fs::directory_entry& entry : fs::directory_iterator(globals.cluster + "/log", none)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".log") || !entry.is_regular_file(none)) continue;
    WEIR_RETURN_IF_ERROR(
        AddLog(entry.path().string(), fmt::format("{}/{}", folder, name), options.names));
  }
  *missing += "logs of other machines: run this there, too\n";
  return {};
}

Result<ExitCode> RunBundle(Globals& globals, const BundleOptions& options) {
  if (!options.file.ends_with(".tar.gz")) {
    return Status(ErrorCode::kInvalid,
                  "'" + options.file + "': the archive is to be called NAME.tar.gz");
  }
  if (fs::exists(options.file)) {
    return Status(ErrorCode::kExists, "'" + options.file + "' is there already");
  }
  const Result<ClusterLink*> link = globals.Link();
  if (!link.ok() && link.status().code() != ErrorCode::kUnreachable) return link.status();
  WEIR_ASSIGN_OR_RETURN(const Scratch scratch, Scratch::Make());
  const std::string name = fs::path(options.file).stem().stem().string();
  const std::string folder = scratch.At(name);
  fs::create_directory(folder);
  std::string missing;
  const Status asked = link.ok() ? Ask(**link, folder, &missing) : link.status();
  // Whoever cannot reach the cluster needs the logs most.
  const bool is_away = asked.code() == ErrorCode::kUnreachable;
  if (is_away) {
    missing += fmt::format("status, versions and statistics: {}\n", asked.message());
    fmt::print(stderr, "osdctl: warning: only logs of this machine: {}\n", asked.message());
  } else if (!asked.ok()) {
    return asked;
  }
  WEIR_RETURN_IF_ERROR(AddLogs(globals, scratch, folder, options, &missing));
  WEIR_RETURN_IF_ERROR(cli::WriteFileAtomically(folder + "/missing.txt", missing));
  const std::string packed = scratch.At("packed");
  const std::string errors = scratch.At("errors");
  if (cli::RunLogged({"tar", "-czf", packed, "-C", scratch.At(""), name}, errors) != 0) {
    return Status(ErrorCode::kIo, "tar: " + cli::TailOf(errors, 1));
  }
  std::error_code failed;
  fs::copy_file(packed, options.file, failed);
  if (failed) {
    std::error_code ignored;
    fs::remove(options.file, ignored);  // a part of it
    return Status::FromErrno(failed.value(), "writing " + options.file);
  }
  if (globals.json()) {
    PrintJson({{"file", options.file}, {"names", options.names}});
  } else {
    fmt::print("{}: {}logs{}\n", options.file, is_away ? "" : "status, versions, statistics and ",
               options.names ? "" : ", without names of files");
  }
  return is_away ? ExitCode::kPartlyDone : ExitCode::kDone;
}

}  // namespace

void AddBundle(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("bundle", "what a bug report needs, in one archive");
  auto options = std::make_shared<BundleOptions>();
  verb->add_option("file", options->file, "the archive, NAME.tar.gz")
      ->required()
      ->type_name("FILE");
  verb->add_flag("--names", options->names, "logs as they are, with names of files");
  verb->footer(
      "Status and map, versions, statistics of every OSD, operations on names, and logs of this\n"
      "machine (journal of a day, a cluster's directory), without names of files.\n"
      "Example: osdctl bundle weir-2026-11-30.tar.gz");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunBundle(g, *options); };
  });
}

}  // namespace weir::osdctl
