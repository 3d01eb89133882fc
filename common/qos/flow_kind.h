// FlowKind: between whom the service of a class is shared, and the key by which FlowOrder tells
// them apart. A mount and the OSDs make their keys of the same facts, so both agree who is whose
// neighbour. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/result.h"
#include "common/qos/flow_order.h"

namespace weir {

enum class FlowKind : uint8_t {
  kUser,    // between users (mount and uid), then between the openers of each
  kCgroup,  // between cgroups of openers (of one mount), then between the openers of each
  kOpener,  // between openers, whosoever they are
  kNone     // one flow: in order of arrival
};
std::string_view ToText(FlowKind kind);  // "user", "cgroup" ...
Result<FlowKind> ParseFlowKind(std::string_view text);

// Of so many users of a class, and openers, statistics tell: those with the most device time.
inline constexpr size_t kFlowsTold = 32;

// Who asks of its own accord, as to report what was written: a mount. Nobody has that uid.
inline constexpr uint32_t kUidOfMount = UINT32_MAX;

// Whose a request is. Numbers and paths mean nothing beyond their mount.
struct FlowSource {
  FlowKind kind = FlowKind::kUser;
  uint64_t session = 0;  // of the mount; 0 within it
  uint32_t uid = 0;
  uint64_t opener = 0;      // thread group that opened the file; 0: unknown
  std::string_view cgroup;  // its path; empty: unknown
};
FlowKey KeyOf(const FlowSource& source);
// A path is no longer in any kernel; a sender may say what he likes.
std::string_view CutCgroup(std::string_view path);

}  // namespace weir
