#include "common/net/envelope.h"

#include <bit>
#include <cstring>

#include "common/base/crc32c.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

// One magic per direction: a reply sent to a server by mistake is foreign.
constexpr uint32_t kMagicToServer = 0x51524957;  // "WIRQ"
constexpr uint32_t kMagicToClient = 0x50524957;  // "WIRP"

struct Fixed {
  uint32_t magic;
  uint16_t version;
  uint16_t reserved;  // 0
  uint32_t header_bytes;
  uint32_t payload_bytes;
  uint32_t crc;  // crc32c of everything above and of the header
};
static_assert(sizeof(Fixed) == kEnvelopeBytes);
constexpr size_t kCheckedBytes = offsetof(Fixed, crc);

uint32_t MagicOf(Direction direction) {
  return direction == Direction::kToServer ? kMagicToServer : kMagicToClient;
}

uint32_t Checksum(const char* frame, size_t header_bytes) {
  return Crc32c(frame + kEnvelopeBytes, header_bytes, Crc32c(frame, kCheckedBytes));
}

Status Bad(std::string what) {
  return {ErrorCode::kBadMessage, std::move(what)};
}

Status BadVersion(uint16_t version) {
  return Bad("frame has protocol version " + std::to_string(version) + "; this is version " +
             std::to_string(kProtocolVersion));
}

Result<Fixed> DecodeFixed(Direction direction, std::string_view frame) {
  Fixed fixed;
  if (frame.size() < sizeof(fixed)) return Bad("frame is shorter than an envelope");
  std::memcpy(&fixed, frame.data(), sizeof(fixed));
  if (fixed.magic != MagicOf(direction)) return Bad("frame has a foreign magic");
  const bool known = fixed.version == kProtocolVersion || fixed.version == kHelloVersion;
  if (!known || fixed.reserved != 0) return BadVersion(fixed.version);
  if (fixed.header_bytes > kMaxHeaderBytes) return Bad("header is over the limit of 1 MiB");
  return fixed;
}

}  // namespace

Result<std::string> EncodeFrame(Direction direction, const wire::RpcHeader& header,
                                size_t payload_bytes, uint16_t version) {
  const size_t header_bytes = header.ByteSizeLong();
  if (header_bytes > kMaxHeaderBytes) {
    return {ErrorCode::kTooBig, "message header of " + std::to_string(header_bytes) +
                                    " bytes is over the limit of 1 MiB"};
  }
  if (payload_bytes > kMaxPayloadBytes) {
    return {ErrorCode::kTooBig, "message payload of " + std::to_string(payload_bytes) +
                                    " bytes is over the limit of 8 MiB"};
  }
  std::string frame(kEnvelopeBytes + header_bytes, '\0');
  header.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(&frame[kEnvelopeBytes]));
  Fixed fixed{.magic = MagicOf(direction),
              .version = version,
              .reserved = 0,
              .header_bytes = static_cast<uint32_t>(header_bytes),
              .payload_bytes = static_cast<uint32_t>(payload_bytes),
              .crc = 0};
  std::memcpy(frame.data(), &fixed, sizeof(fixed));
  fixed.crc = Checksum(frame.data(), header_bytes);
  std::memcpy(frame.data(), &fixed, sizeof(fixed));
  return frame;
}

Result<FrameSizes> DecodeSizes(Direction direction, std::string_view envelope) {
  WEIR_ASSIGN_OR_RETURN(const Fixed fixed, DecodeFixed(direction, envelope));
  if (fixed.version != kProtocolVersion) return BadVersion(fixed.version);
  if (fixed.payload_bytes > kMaxPayloadBytes) return Bad("payload is over the limit of 8 MiB");
  return FrameSizes{fixed.header_bytes, fixed.payload_bytes};
}

Result<Envelope> DecodeEnvelope(Direction direction, std::string_view frame) {
  WEIR_ASSIGN_OR_RETURN(const Fixed fixed, DecodeFixed(direction, frame));
  if (fixed.header_bytes != frame.size() - sizeof(fixed)) return Bad("frame is truncated");
  if (fixed.crc != Checksum(frame.data(), fixed.header_bytes))
    return Bad("header checksum differs");
  return Envelope{frame.substr(sizeof(fixed)), fixed.payload_bytes, fixed.version};
}

Status DecodeFrame(Direction direction, std::string_view frame, size_t payload_bytes,
                   wire::RpcHeader* header, bool* payload_matches, uint16_t* version) {
  WEIR_ASSIGN_OR_RETURN(const Envelope envelope, DecodeEnvelope(direction, frame));
  if (version != nullptr) *version = envelope.version;
  if (version == nullptr && envelope.version != kProtocolVersion) {
    return BadVersion(envelope.version);
  }
  if (!header->ParseFromArray(envelope.header.data(), static_cast<int>(envelope.header.size()))) {
    return Bad("header does not parse");
  }
  *payload_matches = envelope.payload_bytes == payload_bytes && payload_bytes <= kMaxPayloadBytes;
  return Status::Ok();
}

}  // namespace weir::net
