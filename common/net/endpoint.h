// Endpoints as people write them: tcp://HOST:PORT, ipc://PATH, inproc://NAME, or HOST[:PORT].
// Pure; no name is resolved.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace weir::net {

inline constexpr uint16_t kDefaultMdsPort = 7370;

struct Endpoint {
  enum class Kind : uint8_t { kTcp, kIpc, kInproc };
  Kind kind = Kind::kTcp;
  std::string address;  // host (IPv6 without brackets), path or name
  uint16_t port = 0;    // tcp only; 0: any free one

  // The canonical spelling, with its scheme.
  [[nodiscard]] std::string ToString() const;
};

// kInvalid names the text, what is wrong with it and a good example.
Result<Endpoint> ParseEndpoint(std::string_view text);

// Reachable from this machine only: ipc, inproc, tcp on 127.0.0.0/8, ::1 or localhost. False for
// other host names (common/net/resolve.h) and for text that is no endpoint.
bool IsLoopback(std::string_view text);

}  // namespace weir::net
