#include "common/disk/data_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "common/base/files.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

struct Words {
  DataOwner owner;
  const char* name;     // in the record
  const char* what;     // "'DIR' is ..."
  const char* way_out;  // where {0} is DIR
};
constexpr Words kWords[] = {
    {DataOwner::kWeirfs, "weirfs", "the data of weirfs --data", "weirfs --data {0} MNT mounts it"},
    {DataOwner::kWeirDev, "weir-dev", "a cluster of weir-dev", "weir-dev up --dir {0} starts it"},
    {DataOwner::kWeirMds, "weir-mds", "the data of a weir-mds", "weir-mds --data {0} serves it"},
};

const Words& WordsOf(DataOwner owner) {
  return *std::find_if(std::begin(kWords), std::end(kWords),
                       [owner](const Words& words) { return words.owner == owner; });
}

std::string RecordPath(const std::string& dir) {
  return dir + "/owner.json";
}

// Throws what a wrong type or a missing key throws.
Result<DataRecord> ParseRecord(const std::string& path, const Json& json) {
  if (const Json& version = json.at("version");
      version != kVersion || !version.is_number_integer()) {
    return {ErrorCode::kCorrupt,
            fmt::format("'{}' is of version {}, and this program knows {}: use the one that wrote "
                        "it, or a newer",
                        path, version.dump(), kVersion)};
  }
  const auto name = json.at("program").get<std::string>();
  const auto state = json.at("state").get<std::string>();
  const auto words = std::find_if(std::begin(kWords), std::end(kWords),
                                  [&](const Words& word) { return name == word.name; });
  if (words == std::end(kWords) || (state != "making" && state != "whole")) {
    return {ErrorCode::kCorrupt,
            fmt::format("'{}' is damaged: it names program '{}', state '{}'", path, name, state)};
  }
  return DataRecord{.owner = words->owner,
                    .state = state == "whole" ? DataState::kWhole : DataState::kMaking,
                    .cluster = json.at("cluster").get<std::string>(),
                    .recorded = true};
}

Result<DataRecord> LoadRecord(const std::string& dir) {
  const std::string path = RecordPath(dir);
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    return ParseRecord(path, Json::parse(text));
  } catch (const Json::exception& error) {
    return {ErrorCode::kCorrupt,
            fmt::format("'{}' is damaged (put back a copy, or remove it: the other files tell "
                        "whose the directory is): {}",
                        path, error.what())};
  }
}

// What a start that was refused leaves, or mkfs.ext4.
bool HoldsNothing(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code error;
  if (name == "lost+found") return true;
  if (entry.is_socket(error)) return true;
  if (entry.is_directory(error)) return fs::is_empty(entry.path(), error);
  if (name == "weirfs.log") return true;      // which is only ever added to
  if (name == "owner.json.new") return true;  // of a record that was never made
  if (name != "lock" && name != "endpoint") return false;
  static const std::regex kOurs("([0-9]+( .*)?|(tcp|ipc)://.*)?\n?");
  const auto text = ReadFile(entry.path().string());
  return text.ok() && std::regex_match(*text, kOurs);
}

bool IsOsdImage(const std::string& name) {
  return name.starts_with("osd.") && name.ends_with(".img");
}

// What the programs make in DIR, and replace or write to.
bool IsTaken(const fs::path& name) {
  const std::string text = name.string();
  for (const char* taken : {"owner.json", "disks.json", "weir-dev.json", "prometheus.json", "lock",
                            "endpoint", "weirfs.log", "mds.img", "mds", "log", "run"}) {
    if (text == taken) return true;
  }
  return text.ends_with(".sock") || text.ends_with(".new");
}

// A disk that lies in DIR, by whatever name, is none of its other files.
Status CheckDiskNames(const std::string& dir, const std::vector<std::string>& disks) {
  std::error_code error;
  const fs::path top = fs::weakly_canonical(dir, error);
  for (const std::string& disk : disks) {
    const fs::path inside = fs::weakly_canonical(disk, error).lexically_relative(top);
    if (inside.empty() || !IsTaken(*inside.begin())) continue;
    return {ErrorCode::kInvalid,
            fmt::format("'{}' cannot be a disk: '{}' has another use for '{}' (take another name)",
                        disk, dir, inside.begin()->string())};
  }
  return Status::Ok();
}

Status Anothers(const std::string& dir, DataOwner owner) {
  const Words& words = WordsOf(owner);
  return {ErrorCode::kExists,
          fmt::format("'{}' is {} ({}; take another directory)", dir, words.what,
                      fmt::format(fmt::runtime(words.way_out), dir))};
}

// By what lies in it, without a record.
Result<DataRecord> Recognise(const std::string& dir, const std::vector<std::string>& expected) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string path = entry.path().string();
    if (std::find(expected.begin(), expected.end(), path) != expected.end()) continue;
    if (!HoldsNothing(entry)) names.push_back(entry.path().filename().string());
  }
  if (error) return Status::FromErrno(error.value(), fmt::format("cannot read '{}'", dir));
  std::sort(names.begin(), names.end());
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (names.empty()) return DataRecord{};
  const bool embedded = has("disks.json");
  if (embedded && has("weir-dev.json")) {
    return {ErrorCode::kExists,
            fmt::format("'{}' has been used by weirfs --data and by weir-dev, and may have lost "
                        "what one of them stored (move away disks.json or weir-dev.json, "
                        "whichever is not to be used, and look at the data)",
                        dir)};
  }
  if (embedded) return DataRecord{.owner = DataOwner::kWeirfs, .state = DataState::kWhole};
  if (has("weir-dev.json")) {
    return DataRecord{.owner = DataOwner::kWeirDev, .state = DataState::kWhole};
  }
  const auto image = std::find_if(names.begin(), names.end(), IsOsdImage);
  if (image == names.end() && has("mds.img")) {
    return DataRecord{.owner = DataOwner::kWeirMds, .state = DataState::kWhole};
  }
  if (image == names.end()) {
    return {ErrorCode::kExists,
            fmt::format("'{}' is not empty: it holds '{}'{} (take an empty or a new directory)",
                        dir, names.front(),
                        names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "")};
  }
  return {ErrorCode::kCorrupt,
          fmt::format("'{}' holds '{}' and nothing that says whose it is: 'disks.json' (of weirfs "
                      "--data) or 'weir-dev.json' is missing; put it back, or take another "
                      "directory",
                      dir, *image)};
}

bool IsSame(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return a == b || fs::equivalent(a, b, error);
}

// Also by another name: through a symbolic link or a bind mount.
bool IsBelow(const fs::path& path, const fs::path& top) {
  for (fs::path at = path.parent_path();; at = at.parent_path()) {
    if (IsSame(at, top)) return true;
    if (at == at.parent_path()) return false;
  }
}

}  // namespace

Result<DataRecord> LookAtDirectory(const std::string& dir, DataOwner asker,
                                   const std::vector<std::string>& expected) {
  WEIR_RETURN_IF_ERROR(CheckDiskNames(dir, expected));
  struct stat info {};
  if (stat(dir.c_str(), &info) != 0) {
    if (errno == ENOENT) return DataRecord{.owner = asker};
    return Status::FromErrno(errno, fmt::format("cannot look at '{}'", dir));
  }
  if (!S_ISDIR(info.st_mode)) {
    return {ErrorCode::kNotDirectory, fmt::format("'{}' is not a directory", dir)};
  }
  auto record = LoadRecord(dir);
  if (record.code() == ErrorCode::kNotFound) record = Recognise(dir, expected);
  if (!record.ok()) return record;
  if (record->state == DataState::kNew) record->owner = asker;
  if (record->owner != asker) return Anothers(dir, record->owner);
  return record;
}

Status WriteRecord(const std::string& dir, const DataRecord& record) {
  const Json json = {{"version", kVersion},
                     {"program", WordsOf(record.owner).name},
                     {"state", record.state == DataState::kWhole ? "whole" : "making"},
                     {"cluster", record.cluster}};
  return WriteFileAtomically(RecordPath(dir), json.dump() + "\n");
}

std::string OverlapOf(const std::string& data, const std::string& mountpoint) {
  std::error_code error;
  const fs::path dir = fs::weakly_canonical(data, error);
  const fs::path mount = fs::weakly_canonical(mountpoint, error);
  if (IsSame(dir, mount)) {
    return fmt::format("the mountpoint '{}' is the directory of the data, '{}'", mountpoint, data);
  }
  if (IsBelow(mount, dir)) {
    return fmt::format("the mountpoint '{}' lies in the directory of the data, '{}'", mountpoint,
                       data);
  }
  if (!IsBelow(dir, mount)) return {};
  return fmt::format("the mountpoint '{}' would hide the directory of the data, '{}'", mountpoint,
                     data);
}

std::string PathToRecord(const std::string& dir, const std::string& path) {
  return path.starts_with(dir + "/") ? path.substr(dir.size() + 1) : path;
}

std::string PathFromRecord(const std::string& dir, const std::string& recorded) {
  return recorded.starts_with('/') ? recorded : dir + "/" + recorded;
}

}  // namespace weir
