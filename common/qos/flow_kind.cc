#include "common/qos/flow_kind.h"

#include <string>

namespace weir {
namespace {

constexpr std::string_view kFlowWords[] = {"user", "cgroup", "opener", "none"};

// Cgroups and openers get other keys than users of the same numbers: while the kind of a class
// changes, requests of both kinds are under way.
constexpr uint64_t kOfCgroups = 0x6367726f757073;
constexpr uint64_t kOfOpeners = 0x6f70656e657273;

uint64_t HashOfPath(std::string_view path) {
  uint64_t hash = kOfCgroups;
  for (const char c : path) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;  // FNV-1a
  return hash;
}

}  // namespace

std::string_view ToText(FlowKind kind) {
  return kFlowWords[static_cast<size_t>(kind)];
}

Result<FlowKind> ParseFlowKind(std::string_view text) {
  std::string all;
  for (size_t i = 0; i < std::size(kFlowWords); ++i) {
    if (kFlowWords[i] == text) return static_cast<FlowKind>(i);
    all.append(all.empty() ? "" : ", ").append(kFlowWords[i]);
  }
  return Status(ErrorCode::kInvalid,
                "no flow is called '" + std::string(text) + "' (there are: " + all + ")");
}

std::string_view CutCgroup(std::string_view path) {
  constexpr size_t kPathMax = 4096;
  return path.substr(0, kPathMax);
}

FlowKey KeyOf(const FlowSource& source) {
  switch (source.kind) {
    case FlowKind::kUser:
      return {MixHash(source.session, source.uid), source.opener};
    case FlowKind::kCgroup:
      // Whose cgroup is not known is told apart by uid, as are unknown openers.
      if (source.cgroup.empty()) {
        return {MixHash(source.session, MixHash(kOfCgroups, source.uid)), source.opener};
      }
      return {MixHash(source.session, HashOfPath(source.cgroup)), source.opener};
    case FlowKind::kOpener:
      if (source.opener == 0) return {MixHash(source.session, MixHash(~kOfOpeners, source.uid)), 0};
      return {MixHash(source.session, MixHash(kOfOpeners, source.opener)), 0};
    case FlowKind::kNone:
      return {};
  }
  return {};
}

}  // namespace weir
