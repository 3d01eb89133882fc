// FUSE over io_uring as the kernel speaks it (Linux 6.14 and later): carried here, as the header
// may be older than the kernel. A request comes in two buffers that its entry names once: headers,
// and what follows them (names, data). Its answer goes the same way. Pure. Source: the kernel's
// Documentation/filesystems/fuse-io-uring.rst and linux/fuse.h, 7.42.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::client {

// Of FUSE_INIT: the kernel can, and this process wants it.
inline constexpr uint64_t kOverIoUring = 1ULL << 41;

// In the operation of a submission entry.
enum class RingCommand : uint32_t {
  kRegister = 1,        // two buffers: a request may come there
  kCommitAndFetch = 2,  // the answer lies there, and the next request may come
};

// In the 80 bytes of a submission entry that the command may use.
struct RingCommandArea {
  uint64_t flags = 0;
  uint64_t commit_id = 0;  // of the request that is answered
  uint16_t queue = 0;      // the processor whose requests it takes
  uint8_t padding[6] = {};
};
static_assert(sizeof(RingCommandArea) == 24);

struct RingHeaders {
  uint8_t in_out[128];  // fuse_in_header, then fuse_out_header
  uint8_t operation[128];
  uint64_t flags;
  uint64_t commit_id;
  uint32_t payload_bytes;
  uint32_t padding;
  uint64_t reserved;
};
static_assert(sizeof(RingHeaders) == 288);

// The most bytes that AssembleRequest puts before the payload.
inline constexpr size_t kRingHeaderRoom = 256;

// The request as /dev/fuse would have given it, put together before `payload`, where
// kRingHeaderRoom is free. Empty: its sizes do not fit each other.
std::span<uint8_t> AssembleRequest(const RingHeaders& headers, std::span<uint8_t> payload);

// Puts an answer, a fuse_out_header and what follows, where the kernel looks for it. False: it is
// none, or too long.
bool PutAnswer(std::span<const iovec> parts, RingHeaders* headers, std::span<uint8_t> payload);

}  // namespace weir::client
