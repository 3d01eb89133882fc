// TransferBuffers: memory for large reads from a device, in pages of 2 MiB.
//
// A device request names each run of physical memory that it fills. A MiB in pages of 4 KiB is up
// to 256 runs: more than many devices take in one request (virtio-blk: 254), and all that their
// ring holds, so that each read is split and the next one waits until it is over. In one page of
// 2 MiB it is one run. Where the kernel gives no huge pages it is common memory.
//
// A page holds two of up to 1 MiB, or one of up to 2 MiB: a read of 1 MiB that begins within a
// block has 257. Pages are kept when they are free, kRegionsMax at most; what does not fit comes
// from the heap.
//
// Units: bytes. Threads: any. Buffers may outlive the object.
#pragma once

#include <cstddef>
#include <memory>

#include "common/base/buffer.h"

namespace weir {

class TransferBuffers {
 public:
  static constexpr size_t kRegionBytes = 2 << 20;  // a huge page of x86-64, and of arm64 with 4 KiB
  static constexpr size_t kSlotBytes = kRegionBytes / 2;  // the largest read of FUSE, if aligned
  static constexpr size_t kLargeBytes = 256 << 10;        // below it requests stay whole
  static constexpr size_t kRegionsMax = 16;

  TransferBuffers();

  // As Buffer::Aligned.
  [[nodiscard]] Buffer Get(size_t size);

 private:
  class Slots;
  std::shared_ptr<Slots> slots_;
};

}  // namespace weir
