// Where a weir-mds keeps its data: a RocksDB on the raw file system of an image file DIR/mds.img,
// which syncs 2-3 times faster than one in a directory of ext4. The image grows by a quarter when
// it is half full.
//
// Nothing is written to an image that was there before Keep: who is refused, leaves it as it was.
//
// Errors: kBusy: another process uses it; kCorrupt: it is missing, damaged, or of another cluster;
//         kNoSpace, kIo from below. They name the file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/kv/kv_store.h"

namespace weir::mds {

struct MdsStoreOptions {
  uint64_t image_bytes = uint64_t{1} << 30;  // when it is made; a million files
  uint64_t cache_bytes = 64 << 20;
  bool make = false;      // the image, if there is none; the caller founds a cluster in it
  std::string cluster{};  // uuid that it must have, once it has one; empty: any
};

class MdsStore : public KvStore {
 public:
  struct Cluster {
    struct Osd {
      std::string uuid;
      bool joined = false;  // has served
    };
    std::string uuid;  // empty: none was founded yet
    std::map<uint32_t, Osd> osds;
  };
  [[nodiscard]] virtual const Cluster& cluster() const = 0;  // as it was opened
  // What opening, and whoever used the store since, wanted to write is written; from now on
  // everything is.
  virtual Status Keep() = 0;
};

// Where the image lies.
std::string MdsImagePath(const std::string& directory);
// kCorrupt: there is no image.
Status CheckMdsImage(const std::string& directory);
// The store owns everything below it.
Result<std::unique_ptr<MdsStore>> OpenMdsStore(const std::string& directory,
                                               const MdsStoreOptions& options = {});

}  // namespace weir::mds
