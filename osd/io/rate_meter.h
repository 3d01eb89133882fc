// RateMeter: bytes per second over the last full second, in slots of 100 ms.
//
// Units: bytes, monotonic times that never go backwards. Threads: not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "common/base/time.h"

namespace weir::osd {

class RateMeter {
 public:
  void Add(uint64_t bytes, TimePoint now);
  // The ten full slots before the running one: up to 100 ms old, never a part of a second scaled.
  [[nodiscard]] uint64_t BytesPerSecond(TimePoint now);

 private:
  static constexpr int64_t kSlotNs = 100'000'000;
  static constexpr int64_t kSlots = 11;  // a second and the one being filled
  void MoveTo(TimePoint now);

  std::array<uint64_t, kSlots> slots_{};
  int64_t newest_ = 0;  // number of the slot being filled
};

}  // namespace weir::osd
