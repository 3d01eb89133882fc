#include "client/fuse/init_reply.h"

#include <linux/fuse.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace weir::client {
namespace {
constexpr unsigned kWordBits = 32;
}  // namespace

uint64_t OfferedInitFlags(std::span<const uint8_t> request) {
  constexpr size_t kBody = sizeof(fuse_in_header);
  fuse_init_in init{};
  if (request.size() < kBody + offsetof(fuse_init_in, flags2)) return 0;
  std::memcpy(&init, request.data() + kBody, std::min(sizeof(init), request.size() - kBody));
  const uint64_t second = (init.flags & FUSE_INIT_EXT) != 0 ? init.flags2 : 0;
  return second << kWordBits | init.flags;
}

void AddInitFlags(uint64_t offered, uint64_t wanted, std::span<uint8_t> answer) {
  fuse_init_out init{};
  if (answer.size() < sizeof(init)) return;
  std::memcpy(&init, answer.data(), sizeof(init));
  const uint64_t added = offered & wanted;
  init.flags |= static_cast<uint32_t>(added);
  const auto second = static_cast<uint32_t>(added >> kWordBits);
  if (second != 0) init.flags |= FUSE_INIT_EXT;
  init.flags2 |= second;
  std::memcpy(answer.data(), &init, sizeof(init));
}

}  // namespace weir::client
