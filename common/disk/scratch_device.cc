#include "common/disk/scratch_device.h"

namespace weir {

void ScratchDevice::DoRead(uint64_t offset, Buffer buffer, Done done) {
  Status status = below_.Read(offset, buffer);
  if (status.ok()) {
    const std::lock_guard lock(mutex_);
    const uint64_t end = (offset + buffer.size()) / kBlockSize;
    for (auto it = written_.lower_bound(offset / kBlockSize);
         it != written_.end() && it->first < end; ++it) {
      std::memcpy(buffer.data() + (it->first * kBlockSize - offset), it->second.data(), kBlockSize);
    }
  }
  done(std::move(status));
}

void ScratchDevice::DoWrite(uint64_t offset, Buffer buffer, Done done) {
  {
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; at < buffer.size(); at += kBlockSize) {
      Buffer& block = written_[(offset + at) / kBlockSize];
      if (block.empty()) block = Buffer::Aligned(kBlockSize);
      std::memcpy(block.data(), buffer.data() + at, kBlockSize);
    }
  }
  done({});
}

}  // namespace weir
