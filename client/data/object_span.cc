#include "client/data/object_span.h"

#include <algorithm>

#include "common/base/buffer.h"
#include "common/base/check.h"

namespace weir::client {

std::vector<ObjectSpan> MapSpans(const FileLayout& layout, uint64_t offset, uint64_t length) {
  std::vector<ObjectSpan> spans;
  for (const ObjectExtent& extent : MapRange(layout, offset, length)) {
    auto span = std::find_if(spans.rbegin(), spans.rend(), [&](const ObjectSpan& candidate) {
      return candidate.object_index == extent.object_index;
    });
    if (span == spans.rend()) {
      spans.push_back({extent.object_index, extent.object_offset, extent.length, {extent}});
      continue;
    }
    WEIR_CHECK(span->object_offset + span->length == extent.object_offset,
               "pieces of a range do not follow each other in their object");
    span->length += extent.length;
    span->pieces.push_back(extent);
  }
  return spans;
}

uint64_t WholeBlocks(uint64_t offset, uint64_t length) {
  const uint64_t first = offset / kBlockSize,
                 last = (offset + length + kBlockSize - 1) / kBlockSize;
  return length == 0 ? 0 : (last - first) * kBlockSize;
}

}  // namespace weir::client
