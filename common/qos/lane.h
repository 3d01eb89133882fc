// Lane: how urgent a request is taken to be, by its size and by who waits for it. Whoever sends it
// gives a hint, the OSD decides. Values as in common/wire/osd.proto. Pure.
#pragma once

#include <cstdint>

namespace weir {

enum class Lane : uint8_t { kUnknown = 0, kInteractive = 1, kBulk = 2, kBackground = 3 };

// The most bytes of a request that somebody is taken to wait for: pages of a database and small
// files are below it, streams are above.
inline constexpr uint64_t kInteractiveBytesMax = 32 << 10;

// A flow with no more bytes than this under way is light: it waits for its answers before it asks
// again (common/qos/flow_order.h).
inline constexpr uint64_t kLightBytes = 128 << 10;

// Of a request of so many bytes for which somebody waits.
constexpr Lane LaneOf(uint64_t bytes) {
  return bytes <= kInteractiveBytesMax ? Lane::kInteractive : Lane::kBulk;
}

}  // namespace weir
