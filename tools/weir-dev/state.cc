#include "tools/weir-dev/state.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "tools/cli/files.h"

namespace weir::dev {
namespace {

using Json = nlohmann::ordered_json;

std::string PathOf(const std::string& dir) {
  return dir + "/weir-dev.json";
}

Json ToJson(const cli::ProcessId& process) {
  return {{"pid", process.pid}, {"start_time", process.start_time}};
}

cli::ProcessId ToProcess(const Json& json) {
  return {.pid = json.at("pid").get<pid_t>(), .start_time = json.at("start_time").get<uint64_t>()};
}

State FromJson(const Json& json) {
  State state;
  state.endpoint = json.at("endpoint").get<std::string>();
  state.osd_size = json.at("osd_size").get<uint64_t>();
  state.token_rate = json.at("token_rate").get<std::string>();
  state.metrics = json.value("metrics", "");
  state.web = json.value("web", "");
  state.mds = ToProcess(json.at("mds"));
  for (const Json& osd : json.at("osds")) {
    state.osds.push_back({.disk = osd.at("disk").get<std::string>(),
                          .tiers = osd.value("tiers", std::string()),
                          .is_image = osd.at("is_image").get<bool>(),
                          .image_size = osd.value("image_size", uint64_t{0}),
                          .formatted = osd.at("formatted").get<bool>(),
                          .metrics = osd.value("metrics", ""),
                          .process = ToProcess(osd.at("process"))});
  }
  for (const Json& mount : json.at("mounts")) {
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
  if (!text.ok()) {
    return {ErrorCode::kNotFound,
            fmt::format("there is no cluster in '{}' (weir-dev up --dir {} makes one)", dir, dir)};
  }
  try {
    return FromJson(Json::parse(*text));
  } catch (const Json::exception& error) {
    return {ErrorCode::kCorrupt, fmt::format("'{}' is damaged: {}", PathOf(dir), error.what())};
  }
}

Status SaveState(const std::string& dir, const State& state) {
  Json json = {{"version", 1},
               {"endpoint", state.endpoint},
               {"osd_size", state.osd_size},
               {"token_rate", state.token_rate},
               {"metrics", state.metrics},
               {"web", state.web},
               {"mds", ToJson(state.mds)},
               {"osds", Json::array()},
               {"mounts", Json::array()}};
  for (const OsdState& osd : state.osds) {
    json["osds"].push_back({{"disk", osd.disk},
                            {"tiers", osd.tiers},
                            {"is_image", osd.is_image},
                            {"image_size", osd.image_size},
                            {"formatted", osd.formatted},
                            {"metrics", osd.metrics},
                            {"process", ToJson(osd.process)}});
  }
  for (const MountState& mount : state.mounts) {
    json["mounts"].push_back({{"path", mount.path},
                              {"options", mount.options},
                              {"metrics", mount.metrics},
                              {"process", ToJson(mount.process)}});
  }
  return cli::WriteFileAtomically(PathOf(dir), json.dump(1) + "\n");
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
