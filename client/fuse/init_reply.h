// What the answer to FUSE_INIT must say and libfuse 3.14 cannot: flags that are younger than it, of
// which some lie in the second word. They are added to the answer that libfuse has made.
// Pure. Source: the protocol as in linux/fuse.h; by number, as the header may be older than the
// kernel.
#pragma once

#include <cstdint>
#include <span>

namespace weir::client {

// MAP_SHARED of a file that is opened with FOPEN_DIRECT_IO (Linux 6.6 and later).
inline constexpr uint64_t kDirectIoAllowMmap = 1ULL << 36;

// Who writes says whether that costs the file its set-id bits, which fall here; and the kernel asks
// for file capabilities no more before each write (Linux 5.11 and later).
inline constexpr uint64_t kHandleKillprivV2 = 1ULL << 28;

inline constexpr uint64_t kYoungerInitFlags = kDirectIoAllowMmap | kHandleKillprivV2;

// The flags of both words that the kernel offers in `request`, a FUSE_INIT with its header.
uint64_t OfferedInitFlags(std::span<const uint8_t> request);

// `answer`: a fuse_init_out. Adds those of `wanted` that are `offered`; an answer that is too short
// for the second word, as to an old kernel, is left alone.
void AddInitFlags(uint64_t offered, uint64_t wanted, std::span<uint8_t> answer);

}  // namespace weir::client
