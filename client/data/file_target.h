// FileTarget: where and as whom a range of a file is read or written.
#pragma once

#include "client/remote/object_sender.h"
#include "common/base/ids.h"
#include "common/placement/striper.h"

namespace weir::client {

struct FileTarget {
  InodeId inode;
  ClassId class_id;
  FileLayout layout;
  Abandoned abandoned = nullptr;
  Abandoned fenced = nullptr;  // of a write
  Flow flow{};
  bool background = false;  // nobody waits for it

  // A request to one of its objects.
  [[nodiscard]] ObjectOp Op(uint64_t object_index, uint64_t offset, uint64_t length) const {
    ObjectOp op;
    op.class_id = class_id;
    op.flow = flow;
    op.background = background;
    op.pool = layout.pool;
    op.tier = layout.tier;
    op.object = {inode, object_index};
    op.offset = offset;
    op.length = length;
    op.abandoned = abandoned;
    return op;
  }
};

}  // namespace weir::client
