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
};

}  // namespace weir::client
