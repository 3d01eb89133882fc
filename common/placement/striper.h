// Striper: file offsets to objects and back. Pure.
//
// A file is cut into stripe units, dealt round robin over `stripe_count` objects of `object_size`
// each; when those are full the next set of objects begins. stripe_count 1 fills one object after
// the other. Units: bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/tier_name.h"

namespace weir {

struct FileLayout {
  uint64_t stripe_unit = 4 << 20;
  uint32_t stripe_count = 1;
  uint64_t object_size = 4 << 20;
  PoolId pool;
  TierName tier;  // of each OSD; those that have none of that name use their first

  friend bool operator==(const FileLayout&, const FileLayout&) = default;
};

// Units are powers of two from 4 KiB on, unit <= object size <= 4 MiB, object size a multiple of
// the unit, 1 <= count <= 1024. kInvalid names the rule that is broken.
Status ValidateLayout(const FileLayout& layout);

// The largest file that can be addressed: 8 EiB less a byte, as off_t counts.
inline constexpr uint64_t kMaxFileSize = INT64_MAX;

struct ObjectExtent {
  uint64_t object_index = 0;
  uint64_t object_offset = 0;
  uint64_t length = 0;
  uint64_t file_offset = 0;

  friend bool operator==(const ObjectExtent&, const ObjectExtent&) = default;
};

// The pieces of [offset, offset + length), in file order, neighbours in the same object joined.
std::vector<ObjectExtent> MapRange(const FileLayout& layout, uint64_t offset, uint64_t length);

// What a truncation to `size` leaves: objects from `first_gone` on are deleted, each of `cut` is
// cut to its new length (object index, object size).
struct TruncatePlan {
  struct Cut {
    uint64_t object_index;
    uint64_t object_size;
    friend bool operator==(const Cut&, const Cut&) = default;
  };
  std::vector<Cut> cuts;
  uint64_t first_gone = 0;
};
TruncatePlan PlanTruncate(const FileLayout& layout, uint64_t size);

// The length of one object when the file is `size` bytes without holes.
uint64_t ObjectSizeAt(const FileLayout& layout, uint64_t object_index, uint64_t size);

}  // namespace weir
