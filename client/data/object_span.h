// ObjectSpan: the part of one file range that lies in one object. With a stripe unit smaller than
// the object, one object holds several pieces of a range; inside the object they follow each other
// without a gap, so that one request moves them all.
#pragma once

#include <vector>

#include "common/placement/striper.h"

namespace weir::client {

struct ObjectSpan {
  uint64_t object_index = 0;
  uint64_t object_offset = 0;
  uint64_t length = 0;
  std::vector<ObjectExtent> pieces;  // in file order, which is also object order
};

// The spans of [offset, offset + length), one per object, in order of their first byte in the file.
std::vector<ObjectSpan> MapSpans(const FileLayout& layout, uint64_t offset, uint64_t length);

// What a range takes when it is stored.
uint64_t WholeBlocks(uint64_t offset, uint64_t length);

}  // namespace weir::client
