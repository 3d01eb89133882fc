#include "common/disk/transfer_buffers.h"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace weir {

class TransferBuffers::Slots {
 public:
  Slots() = default;
  ~Slots() {
    for (const Region& region : regions_) (void)munmap(region.begin, kRegionBytes);
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  // One half of a region, or both.
  struct Slot {
    size_t region;
    unsigned halves;
    uint8_t* begin;
  };

  // In the first region that has room, so that those behind it stay whole. None: there are as many
  // as there may be, or the kernel has no memory.
  std::optional<Slot> Take(size_t size) {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < regions_.size() || AddRegion(); ++i) {
      const unsigned halves = Fitting(regions_[i], size);
      if (halves == 0) continue;
      regions_[i].taken |= halves;
      return Slot{i, halves, regions_[i].begin + (halves == kSecond ? kSlotBytes : 0)};
    }
    return std::nullopt;
  }
  void GiveBack(const Slot& slot) {
    std::lock_guard lock(mutex_);
    regions_[slot.region].taken &= ~slot.halves;
  }

 private:
  static constexpr unsigned kFirst = 1;
  static constexpr unsigned kSecond = 2;
  struct Region {
    uint8_t* begin;
    unsigned taken;
  };

  // 0: there is no room for it.
  static unsigned Fitting(const Region& region, size_t size) {
    if (size > kSlotBytes) return region.taken == 0 ? kFirst | kSecond : 0;
    if ((region.taken & kFirst) == 0) return kFirst;
    return ~region.taken & kSecond;
  }
  bool AddRegion() {
    if (regions_.size() == kRegionsMax) return false;
    void* const mapped =
        mmap(nullptr, 2 * kRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return false;
    auto* const begin = static_cast<uint8_t*>(mapped);
    const size_t before =
        (kRegionBytes - reinterpret_cast<uintptr_t>(begin) % kRegionBytes) % kRegionBytes;
    uint8_t* const region = begin + before;
    if (before > 0) (void)munmap(begin, before);
    (void)munmap(region + kRegionBytes, kRegionBytes - before);
    (void)madvise(region, kRegionBytes, MADV_HUGEPAGE);
    regions_.push_back({region, 0});
    return true;
  }

  std::mutex mutex_;
  std::vector<Region> regions_;
};

TransferBuffers::TransferBuffers() : slots_(std::make_shared<Slots>()) {}

Buffer TransferBuffers::Get(size_t size) {
  if (size <= kLargeBytes || size > kRegionBytes) return Buffer::Aligned(size);
  const auto slot = slots_->Take(size);
  if (!slot.has_value()) return Buffer::Aligned(size);
  return {std::shared_ptr<void>(slot->begin,
                                [slots = slots_, slot = *slot](void*) { slots->GiveBack(slot); }),
          slot->begin, size};
}

}  // namespace weir
