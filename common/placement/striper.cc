#include "common/placement/striper.h"

#include <algorithm>
#include <bit>
#include <string>

namespace weir {
namespace {

constexpr uint64_t kSmallestUnit = 4096;
constexpr uint64_t kLargestObject = 4 << 20;
constexpr uint32_t kMostObjectsPerStripe = 1024;

Status Broken(const std::string& what, uint64_t value, const std::string& rule) {
  return {ErrorCode::kInvalid, "layout: " + what + " " + std::to_string(value) + " " + rule};
}

}  // namespace

Status ValidateLayout(const FileLayout& layout) {
  const uint64_t unit = layout.stripe_unit;
  if (!std::has_single_bit(unit) || unit < kSmallestUnit || unit > kLargestObject) {
    return Broken("stripe_unit", unit, "must be a power of two from 4K to 4M");
  }
  if (layout.object_size < unit || layout.object_size > kLargestObject) {
    return Broken("object_size", layout.object_size, "must be between the stripe_unit and 4M");
  }
  if (layout.object_size % unit != 0) {
    return Broken("object_size", layout.object_size,
                  "must be a multiple of the stripe_unit " + std::to_string(unit));
  }
  if (layout.stripe_count < 1 || layout.stripe_count > kMostObjectsPerStripe) {
    return Broken("stripe_count", layout.stripe_count, "must be between 1 and 1024");
  }
  return Status::Ok();
}

std::vector<ObjectExtent> MapRange(const FileLayout& layout, uint64_t offset, uint64_t length) {
  WEIR_CHECK(offset <= kMaxFileSize && length <= kMaxFileSize - offset, "range beyond any file");
  // With one object at a time the whole object is one unit.
  const uint64_t unit = layout.stripe_count == 1 ? layout.object_size : layout.stripe_unit;
  const uint64_t row = unit * layout.stripe_count;
  const uint64_t set = layout.object_size * layout.stripe_count;
  std::vector<ObjectExtent> pieces;
  pieces.reserve(length / unit + 2);
  for (const uint64_t end = offset + length; offset < end;) {
    const uint64_t in_set = offset % set;
    const uint64_t in_row = in_set % row;
    const uint64_t in_unit = in_row % unit;
    const uint64_t bytes = std::min(unit - in_unit, end - offset);
    pieces.push_back({.object_index = offset / set * layout.stripe_count + in_row / unit,
                      .object_offset = in_set / row * unit + in_unit,
                      .length = bytes,
                      .file_offset = offset});
    offset += bytes;
  }
  return pieces;
}

uint64_t ObjectSizeAt(const FileLayout& layout, uint64_t object_index, uint64_t size) {
  const uint64_t set_bytes = layout.object_size * layout.stripe_count;
  const uint64_t set = object_index / layout.stripe_count;
  if (set > size / set_bytes) return 0;
  const uint64_t in_set = std::min(size - set * set_bytes, set_bytes);
  const uint64_t row = layout.stripe_unit * layout.stripe_count;
  const uint64_t before = object_index % layout.stripe_count * layout.stripe_unit;
  const uint64_t in_row = in_set % row;
  const uint64_t tail = in_row > before ? std::min(in_row - before, layout.stripe_unit) : 0;
  return in_set / row * layout.stripe_unit + tail;
}

TruncatePlan PlanTruncate(const FileLayout& layout, uint64_t size) {
  const uint64_t set_bytes = layout.object_size * layout.stripe_count;
  const uint64_t first = size / set_bytes * layout.stripe_count;
  TruncatePlan plan{.cuts = {}, .first_gone = first};
  // Objects of a set get their first unit in order, so those that stay are a prefix of it.
  for (uint64_t i = first; i < first + layout.stripe_count; ++i) {
    const uint64_t left = ObjectSizeAt(layout, i, size);
    if (left == 0) break;
    plan.first_gone = i + 1;
    if (left < layout.object_size) plan.cuts.push_back({i, left});
  }
  return plan;
}

}  // namespace weir
