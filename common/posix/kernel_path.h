// KernelPath: how a mount's requests come from its kernel. Values as in common/wire/mds.proto.
// Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

enum class KernelPath : uint8_t { kUnknown = 0, kDevice = 1, kUring = 2 };

// A number from another machine; what is not known is kUnknown.
constexpr KernelPath ToKernelPath(int number) {
  return number == 1 || number == 2 ? static_cast<KernelPath>(number) : KernelPath::kUnknown;
}

constexpr std::string_view ToText(KernelPath path) {
  switch (path) {
    case KernelPath::kDevice:
      return "/dev/fuse";
    case KernelPath::kUring:
      return "io_uring";
    case KernelPath::kUnknown:
      break;
  }
  return "-";
}

}  // namespace weir
