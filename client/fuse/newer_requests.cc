#include "client/fuse/newer_requests.h"

#include <linux/fuse.h>

#include <cstring>

namespace weir::client {
namespace {
// By number, as the kernel's header may be older than the kernel.
constexpr uint32_t kTmpfile = 51;
constexpr uint32_t kStatx = 52;

struct Create {
  fuse_in_header header;
  fuse_create_in body;
};
struct Statx {
  fuse_in_header header;
  uint32_t getattr_flags, reserved;
  uint64_t handle;
  uint32_t flags, mask;
};
static_assert(sizeof(Statx) == sizeof(fuse_in_header) + 24);
static_assert(offsetof(Statx, handle) == sizeof(fuse_in_header) + offsetof(fuse_getattr_in, fh));
}  // namespace

void MakeFamiliar(std::span<uint8_t> request) {
  Statx statx;
  if (request.size() < sizeof(statx.header)) return;
  std::memcpy(&statx.header, request.data(), sizeof(statx.header));
  if (statx.header.opcode == kTmpfile && request.size() >= sizeof(Create)) {
    Create create;
    std::memcpy(&create, request.data(), sizeof(create));
    create.header.opcode = FUSE_CREATE;
    create.body.flags |= O_TMPFILE;
    std::memcpy(request.data(), &create, sizeof(create));
  } else if (statx.header.opcode == kStatx && request.size() >= sizeof(statx)) {
    std::memcpy(&statx, request.data(), sizeof(statx));
    statx.header.opcode = FUSE_GETATTR;
    statx.getattr_flags = FUSE_GETATTR_FH;
    statx.handle = kStatxHandle;
    std::memcpy(request.data(), &statx, sizeof(statx));
  }
}

}  // namespace weir::client
