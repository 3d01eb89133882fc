// RocksDB's FileSystem on a RawVolume. One flat directory; names are RocksDB's paths.
// Files that end in .log are framed: a sync of them is one write and one flush.
// Threads: as RocksDB demands, any; each file object one thread at a time.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

#include "common/disk/raw_volume.h"

namespace weir {

// The volume must outlive the file system and everything opened through it.
std::shared_ptr<rocksdb::FileSystem> MakeRawFileSystem(RawVolume& volume);

}  // namespace weir
