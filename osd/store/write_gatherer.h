// WriteGatherer: joins small writes that come while others are under way.
//
// Copy-on-write hands out neighbouring places in a row, so writes of many clients are neighbours on
// the device although their files are not. The first goes out at once; what comes until it is
// complete goes out together, neighbours as one write. A lone writer notices nothing, sixteen cost
// the processor (and a disk its request slots) little more than a few.
//
// Threads: any. Done runs on the device's completion thread, without a lock of this object.
// Errors:  those of the device; all writes that were joined fail together.
#pragma once

#include <mutex>
#include <vector>

#include "common/disk/block_device.h"

namespace weir::osd {

class WriteGatherer {
 public:
  static constexpr size_t kSmallMax = 16 << 10;  // larger ones gain nothing
  static constexpr size_t kRunMax = 256 << 10;   // bytes of one joined write

  explicit WriteGatherer(BlockDevice& device) : device_(device) {}

  // Offset, length and address are multiples of kBlockSize.
  void Write(uint64_t offset, Buffer buffer, BlockDevice::Done done);

 private:
  struct Waiting {
    uint64_t offset;
    Buffer buffer;
    BlockDevice::Done done;
  };
  using Run = std::vector<Waiting>;
  static std::vector<Run> Join(std::vector<Waiting> waiting);
  void Send(Run run);
  void Completed();

  BlockDevice& device_;
  std::mutex mutex_;
  size_t under_way_ = 0;  // runs on the device
  std::vector<Waiting> waiting_;
};

}  // namespace weir::osd
