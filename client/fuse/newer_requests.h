// Requests of the kernel that are younger than libfuse 3.14, which would answer ENOSYS. Each has
// the form of an older one: it is given that one's number, and a mark by which our handler knows.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::client {

// STATX comes as a GETATTR with this handle, which no open file has.
inline constexpr uint64_t kStatxHandle = UINT64_MAX;
// TMPFILE comes as a CREATE with this flag, which no other has. The kernel sets it only when a
// process asked; overlayfs makes such files without.
inline constexpr bool IsTmpfile(int open_flags) {
  return (open_flags & O_TMPFILE) == O_TMPFILE;
}

// `request`: one request as the kernel wrote it; any other, or a short one, is left alone.
void MakeFamiliar(std::span<uint8_t> request);

}  // namespace weir::client
