#include "client/fuse/ring_protocol.h"

#include <linux/fuse.h>

#include <cstring>

namespace weir::client {

std::span<uint8_t> AssembleRequest(const RingHeaders& headers, std::span<uint8_t> payload) {
  fuse_in_header header{};
  std::memcpy(&header, headers.in_out, sizeof(header));
  const size_t rest = sizeof(header) + headers.payload_bytes;
  if (header.len < rest || headers.payload_bytes > payload.size()) return {};
  const size_t operation = header.len - rest;
  if (operation > sizeof(headers.operation)) return {};
  uint8_t* const begin = payload.data() - operation - sizeof(header);
  std::memcpy(begin, &header, sizeof(header));
  if (operation > 0) std::memcpy(begin + sizeof(header), headers.operation, operation);
  return {begin, header.len};
}

bool PutAnswer(std::span<const iovec> parts, RingHeaders* headers, std::span<uint8_t> payload) {
  if (parts.empty() || parts[0].iov_len != sizeof(fuse_out_header)) return false;
  size_t put = 0;
  for (const iovec& part : parts.subspan(1)) {
    if (part.iov_len > payload.size() - put) return false;
    if (part.iov_len > 0) std::memcpy(payload.data() + put, part.iov_base, part.iov_len);
    put += part.iov_len;
  }
  std::memcpy(headers->in_out, parts[0].iov_base, sizeof(fuse_out_header));
  headers->payload_bytes = static_cast<uint32_t>(put);
  return true;
}

}  // namespace weir::client
