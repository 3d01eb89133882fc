#include "client/fuse/resend.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <cstring>

namespace weir::client {
namespace {
// By number, as the kernel's header may be older than the kernel.
constexpr uint64_t kHasResend = uint64_t{1} << 39;
constexpr int32_t kNotifyResend = 7;

struct Init {
  fuse_in_header header;
  fuse_init_in body;
};
}  // namespace

bool CanAskAgain(std::span<const uint8_t> init) {
  Init request;
  if (init.size() < sizeof(request)) return false;
  std::memcpy(&request, init.data(), sizeof(request));
  const uint64_t flags = request.body.flags | uint64_t{request.body.flags2} << 32;
  return request.header.opcode == FUSE_INIT && (flags & kHasResend) != 0;
}

bool AskAgain(int device) {
  const fuse_out_header notice{sizeof(fuse_out_header), kNotifyResend, 0};
  return write(device, &notice, sizeof(notice)) == sizeof(notice);
}

}  // namespace weir::client
