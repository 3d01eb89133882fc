// Envelope: the fixed start of frame 0, which proves that a message is ours before anything parses
// it. Layout and history: common/wire/PROTOCOL.md. Pure; the bytes may be anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace weir::wire {
class RpcHeader;
}

namespace weir::net {

inline constexpr uint16_t kProtocolVersion = 2;
// The version of the envelope of every HELLO, for ever: so any two can say that they do not
// understand each other.
inline constexpr uint16_t kHelloVersion = 1;
inline constexpr size_t kEnvelopeBytes = 20;
inline constexpr size_t kMaxHeaderBytes = 1 << 20;   // of the serialized wire::RpcHeader
inline constexpr size_t kMaxPayloadBytes = 8 << 20;  // of the payload

enum class Direction : uint8_t { kToServer, kToClient };

// Frame 0: the envelope and the serialized header. kTooBig names the limit that is broken.
Result<std::string> EncodeFrame(Direction direction, const wire::RpcHeader& header,
                                size_t payload_bytes, uint16_t version = kProtocolVersion);

// How long the frames are whose first kEnvelopeBytes these are, for whoever has to cut them out of
// a stream, where every version is ours. kBadMessage as below, except for the checksum, which needs
// the header.
struct FrameSizes {
  uint32_t header_bytes = 0;
  uint32_t payload_bytes = 0;
};
Result<FrameSizes> DecodeSizes(Direction direction, std::string_view envelope);

// What a valid envelope says.
struct Envelope {
  std::string_view header;              // the serialized wire::RpcHeader, inside the frame
  uint32_t payload_bytes = 0;           // of the payload as its sender meant it
  uint16_t version = kProtocolVersion;  // or kHelloVersion
};
// kBadMessage says which check failed: size, magic, version, checksum. Does not parse the header.
Result<Envelope> DecodeEnvelope(Direction direction, std::string_view frame);

// The whole frame 0; also kBadMessage when the header does not parse. `payload_matches` is false
// when the payload is not what the sender meant: the header is then good for an error reply only.
// `version`: of the envelope; null: it must be kProtocolVersion.
Status DecodeFrame(Direction direction, std::string_view frame, size_t payload_bytes,
                   wire::RpcHeader* header, bool* payload_matches, uint16_t* version = nullptr);

}  // namespace weir::net
