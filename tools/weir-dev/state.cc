#include "tools/weir-dev/state.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/disk/data_directory.h"
#include "common/disk/disk_spec.h"
#include "common/disk/tier_spec.h"
#include "tools/cli/files.h"

namespace weir::dev {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kVersion = 2;

std::string PathOf(const std::string& dir) {
  return dir + "/weir-dev.json";
}

Json ToJson(const cli::ProcessId& process) {
  return {{"pid", process.pid}, {"start_time", process.start_time}};
}

// The JSON library throws when a key is missing or a type is wrong; where it would convert, we do.
struct Wrong {
  std::string what;
};

template <typename Number>
Number NumberOf(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<Number>::max()) {
    throw Wrong{fmt::format("'{}' is no number that it can be", key)};
  }
  return value.get<Number>();
}

const Json& ListOf(const Json& json, const char* key) {
  if (!json.at(key).is_array()) throw Wrong{fmt::format("'{}' is no list", key)};
  return json.at(key);
}

cli::ProcessId ToProcess(const Json& json) {
  return {.pid = NumberOf<pid_t>(json, "pid"),
          .start_time = NumberOf<uint64_t>(json, "start_time")};
}

std::string Rebase(const std::string& text, const std::function<std::string(std::string)>& path) {
  const auto spec = ParseDiskSpec(text);
  if (!spec.ok()) throw Wrong{spec.status().message()};
  if (spec->path.empty()) throw Wrong{"a disk without a path"};
  if (spec->path.find('\0') != std::string::npos) throw Wrong{"a path with a zero byte"};
  return WithPath(text, path(spec->path));
}

// All paths of an OSD's disks, changed by `path`.
void RebaseDisks(OsdState* osd, const std::function<std::string(std::string)>& path) {
  if (osd->tiers.empty()) {
    osd->disk = Rebase(osd->disk, path);
    return;
  }
  auto tiers = ParseTierDisks(osd->tiers);
  if (!tiers.ok()) throw Wrong{tiers.status().message()};
  for (TierSpec& tier : *tiers) tier.disk = Rebase(tier.disk, path);
  osd->tiers = FormatTierDisks(*tiers);
}

// Version 1: images of ours lie in DIR, wherever that was when it was written.
void MoveHere(const std::string& dir, size_t index, OsdState* osd) {
  RebaseDisks(osd, [&](const std::string& path) {
    const std::string name = std::filesystem::path(path).filename().string();
    const std::string ours = fmt::format("osd.{}.", index);
    const bool tier = !osd->tiers.empty() && name.starts_with(ours) && name.ends_with(".img") &&
                      std::filesystem::exists(dir + "/" + name);
    return osd->is_image || tier ? dir + "/" + name : path;
  });
}

OsdState ToOsd(const std::string& dir, uint64_t version, size_t index, const Json& json,
               uint64_t osd_size) {
  OsdState osd = {.disk = json.at("disk").get<std::string>(),
                  .tiers = json.value("tiers", std::string()),
                  .is_image = json.at("is_image").get<bool>(),
                  .images = {},
                  .formatted = json.at("formatted").get<bool>(),
                  .metrics = json.value("metrics", ""),
                  .process = ToProcess(json.at("process"))};
  if (version == 1) {
    MoveHere(dir, index, &osd);
    const uint64_t size = json.contains("image_size") ? NumberOf<uint64_t>(json, "image_size") : 0;
    if (osd.is_image) {
      osd.images = {{fmt::format("osd.{}.img", index), size == 0 ? osd_size : size}};
    }
    return osd;
  }
  RebaseDisks(&osd, [&](const std::string& path) { return PathFromRecord(dir, path); });
  for (const Json& image : ListOf(json, "images")) {
    osd.images.push_back({image.at("name").get<std::string>(), NumberOf<uint64_t>(image, "size")});
    if (osd.images.back().name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      throw Wrong{
          fmt::format("the image '{}' is not named in the directory", osd.images.back().name)};
    }
  }
  return osd;
}

State FromJson(const std::string& dir, const Json& json) {
  const auto version = NumberOf<uint64_t>(json, "version");
  if (version < 1 || version > kVersion) {
    throw Wrong{
        fmt::format("its version is {}, and this program knows 1 to {}: use the one that "
                    "wrote it, or a newer",
                    version, kVersion)};
  }
  State state;
  state.endpoint = json.at("endpoint").get<std::string>();
  if (state.endpoint.empty()) throw Wrong{"it names no endpoint of the MDS"};
  state.osd_size = NumberOf<uint64_t>(json, "osd_size");
  state.token_rate = json.at("token_rate").get<std::string>();
  state.metrics = json.value("metrics", "");
  state.web = json.value("web", "");
  state.mds = ToProcess(json.at("mds"));
  for (const Json& osd : ListOf(json, "osds")) {
    state.osds.push_back(ToOsd(dir, version, state.osds.size(), osd, state.osd_size));
  }
  if (state.osds.empty()) throw Wrong{"it names no OSD"};
  for (const Json& mount : ListOf(json, "mounts")) {
    state.mounts.push_back({.path = mount.at("path").get<std::string>(),
                            .options = mount.value("options", ""),
                            .metrics = mount.value("metrics", ""),
                            .process = ToProcess(mount.at("process"))});
  }
  return state;
}

}  // namespace

Result<State> LoadState(const std::string& dir) {
  const auto text = cli::ReadFile(PathOf(dir));
  if (!text.ok() && text.code() != ErrorCode::kNotFound) return text.status();
  if (!text.ok()) {
    return {ErrorCode::kNotFound,
            fmt::format("there is no cluster in '{}' (weir-dev up --dir {} makes one)", dir, dir)};
  }
  std::string wrong;
  try {
    return FromJson(dir, Json::parse(*text));
  } catch (const Json::exception& error) {
    wrong = error.what();
  } catch (const Wrong& error) {
    wrong = error.what;
  }
  return {ErrorCode::kCorrupt,
          fmt::format("'{}' is damaged: {} (put back a copy of it)", PathOf(dir), wrong)};
}

Status SaveState(const std::string& dir, const State& state) {
  Json json = {{"version", kVersion},        {"endpoint", state.endpoint},
               {"osd_size", state.osd_size}, {"token_rate", state.token_rate},
               {"metrics", state.metrics},   {"web", state.web},
               {"mds", ToJson(state.mds)},   {"osds", Json::array()},
               {"mounts", Json::array()}};
  for (OsdState osd : state.osds) {
    RebaseDisks(&osd, [&](const std::string& path) { return PathToRecord(dir, path); });
    Json& entry = json["osds"].emplace_back(Json{{"disk", osd.disk},
                                                 {"tiers", osd.tiers},
                                                 {"is_image", osd.is_image},
                                                 {"images", Json::array()},
                                                 {"formatted", osd.formatted},
                                                 {"metrics", osd.metrics},
                                                 {"process", ToJson(osd.process)}});
    for (const auto& image : osd.images) {
      entry["images"].push_back({{"name", image.name}, {"size", image.size}});
    }
  }
  for (const MountState& mount : state.mounts) {
    json["mounts"].push_back({{"path", mount.path},
                              {"options", mount.options},
                              {"metrics", mount.metrics},
                              {"process", ToJson(mount.process)}});
  }
  try {
    return cli::WriteFileAtomically(PathOf(dir), json.dump(1) + "\n");
  } catch (const Json::exception& error) {
    return {ErrorCode::kInvalid,
            fmt::format("a path cannot be recorded in '{}': {}", PathOf(dir), error.what())};
  }
}

Result<DaemonName> ParseDaemon(const State& state, const std::string& text) {
  const size_t dot = text.find('.');
  const std::string kind = text.substr(0, dot);
  DaemonName name;
  size_t count = 0;
  if (kind == "mds") {
    name.kind = DaemonName::Kind::kMds;
    count = 1;
  } else if (kind == "osd") {
    name.kind = DaemonName::Kind::kOsd;
    count = state.osds.size();
  } else if (kind == "mnt") {
    name.kind = DaemonName::Kind::kMount;
    count = state.mounts.size();
  }
  const char* end = text.data() + text.size();
  const auto parsed = dot == std::string::npos
                          ? std::from_chars_result{text.data(), std::errc::invalid_argument}
                          : std::from_chars(text.data() + dot + 1, end, name.index);
  if (parsed.ec != std::errc() || parsed.ptr != end ||
      (kind != "mds" && kind != "osd" && kind != "mnt")) {
    return {ErrorCode::kInvalid,
            fmt::format("'{}' names no daemon (as osd.0, mds.0 or mnt.0 do)", text)};
  }
  if (name.index >= count) {
    return {ErrorCode::kNotFound, fmt::format("there is no {}: this cluster has {} osd, 1 mds, {} "
                                              "mnt",
                                              text, state.osds.size(), state.mounts.size())};
  }
  return name;
}

cli::ProcessId& ProcessOf(State& state, const DaemonName& name) {
  switch (name.kind) {
    case DaemonName::Kind::kMds:
      return state.mds;
    case DaemonName::Kind::kOsd:
      return state.osds[name.index].process;
    case DaemonName::Kind::kMount:
      break;
  }
  return state.mounts[name.index].process;
}

}  // namespace weir::dev
