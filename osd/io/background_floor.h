// What WeirFS's own background work gets of a disk whatever the others do. Booked beside G0, not
// inside it (osd/qos/RULES.md §3.1). An operator's reservation of the class stands instead. Pure.
//
//   class              of G0   at least   because
//   system.compaction  1/16    4 MiB/s    writers wait for it in the end
//   system.purge       1/64    1 MiB/s    256 objects a second, up to 1 GiB of data
//   system.scrub       1/64    1 MiB/s    a full disk of 1 TB at 200 MB/s in four days
//
// Units: bytes per second.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/qos/qos_config.h"

namespace weir::osd {

inline uint64_t DefaultFloor(ClassId id, uint64_t token_rate) {
  constexpr uint64_t kMiB = 1 << 20;
  if (id == kSystemCompaction) return std::max(4 * kMiB, token_rate / 16);
  return std::max(kMiB, token_rate / 64);
}

inline uint64_t BackgroundFloor(const ClassSpec& spec, uint64_t token_rate) {
  const bool reserved = spec.reservation.has_value() && spec.reservation->bytes_per_s > 0;
  return reserved ? spec.reservation->bytes_per_s : DefaultFloor(spec.id, token_rate);
}

// Makes the pipeline keep the floor as it keeps a reservation.
inline void PromiseFloor(uint64_t bytes_per_s, ClassSpec* spec) {
  if (spec->reservation.has_value()) return;
  Reservation& floor = spec->reservation.emplace();
  floor.bytes_per_s = bytes_per_s;
  floor.scope = ReservationScope::kOsd;
}

}  // namespace weir::osd
