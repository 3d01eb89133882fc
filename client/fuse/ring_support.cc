#include "client/fuse/ring_support.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace weir::client {
namespace {

constexpr char kParameter[] = "/sys/module/fuse/parameters/enable_uring";
constexpr char kPossible[] = "/sys/devices/system/cpu/possible";
constexpr uint64_t kShare = 4;  // of the machine's memory

}  // namespace

Status RingsOffered() {
  std::ifstream file(kParameter);
  char value = 'N';
  if (!(file >> value)) {
    return {ErrorCode::kNotSupported, "this kernel has no FUSE over io_uring (Linux 6.14)"};
  }
  if (value == 'Y') return Status::Ok();
  return {ErrorCode::kNotSupported,
          std::string("FUSE over io_uring is off in this kernel: echo Y > ") + kParameter};
}

uint16_t CountProcessors(const std::string& list) {
  std::istringstream ranges(list);
  uint16_t count = 0;
  for (std::string range; std::getline(ranges, range, ',');) {
    unsigned first = 0;
    char dash = 0;
    std::istringstream numbers(range);
    if (!(numbers >> first)) return 0;
    unsigned last = first;
    if (numbers >> dash && (dash != '-' || !(numbers >> last) || last < first)) return 0;
    count = static_cast<uint16_t>(count + last - first + 1);
  }
  return count;
}

uint16_t PossibleProcessors() {
  std::ifstream file(kPossible);
  std::string list;
  std::getline(file, list);
  const uint16_t count = CountProcessors(list);
  return count != 0 ? count : static_cast<uint16_t>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF)));
}

uint64_t RingBytesMax() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / kShare;
}

}  // namespace weir::client
