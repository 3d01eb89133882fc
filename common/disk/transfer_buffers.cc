#include "common/disk/transfer_buffers.h"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace weir {

class TransferBuffers::Slots {
 public:
  Slots() = default;
  ~Slots() {
    for (uint8_t* region : regions_) (void)munmap(region, kRegionBytes);
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  // nullptr: there are as many as there may be, or the kernel has no memory.
  uint8_t* Take() {
    std::lock_guard lock(mutex_);
    if (free_.empty() && regions_.size() < kRegionsMax) AddRegion();
    if (free_.empty()) return nullptr;
    uint8_t* const slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void GiveBack(uint8_t* slot) {
    std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

 private:
  void AddRegion() {
    void* const mapped =
        mmap(nullptr, 2 * kRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return;
    auto* const begin = static_cast<uint8_t*>(mapped);
    const size_t before =
        (kRegionBytes - reinterpret_cast<uintptr_t>(begin) % kRegionBytes) % kRegionBytes;
    uint8_t* const region = begin + before;
    if (before > 0) (void)munmap(begin, before);
    (void)munmap(region + kRegionBytes, kRegionBytes - before);
    (void)madvise(region, kRegionBytes, MADV_HUGEPAGE);
    regions_.push_back(region);
    for (size_t at = 0; at < kRegionBytes; at += kSlotBytes) free_.push_back(region + at);
  }

  std::mutex mutex_;
  std::vector<uint8_t*> regions_;
  std::vector<uint8_t*> free_;  // the one that was used last is the next
};

TransferBuffers::TransferBuffers() : slots_(std::make_shared<Slots>()) {}

Buffer TransferBuffers::Get(size_t size) {
  if (size <= kLargeBytes || size > kSlotBytes) return Buffer::Aligned(size);
  uint8_t* const slot = slots_->Take();
  if (slot == nullptr) return Buffer::Aligned(size);
  return {std::shared_ptr<void>(slot, [slots = slots_, slot](void*) { slots->GiveBack(slot); }),
          slot, size};
}

}  // namespace weir
