// Where a weir-mds keeps its data: a RocksDB on the raw file system of an image file DIR/mds.img,
// which syncs 2-3 times faster than one in a directory of ext4. The image grows by a quarter when
// it is half full. Errors: kBusy: another process uses it; kNoSpace, kIo from below, naming the
// file.
#pragma once

#include <memory>
#include <string>

#include "common/kv/kv_store.h"

namespace weir::mds {

struct MdsStoreOptions {
  uint64_t image_bytes = uint64_t{1} << 30;  // when it is made; a million files
  uint64_t cache_bytes = 64 << 20;
};

// Where the image lies.
std::string MdsImagePath(const std::string& directory);
// Makes the directory and the image on first use. The store owns everything below it.
Result<std::unique_ptr<KvStore>> OpenMdsStore(const std::string& directory,
                                              const MdsStoreOptions& options = {});

}  // namespace weir::mds
