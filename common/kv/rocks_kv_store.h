// KvStore on RocksDB, either in a directory of a filesystem or on a region of a raw device
// (common/disk/raw_file_system.h: 2-3 times faster to sync than on ext4).
//
// Apply with kDurable is one RocksDB batch with a synced log: one write and one flush of the device
// that the region lies on, begun after Apply was called. The store may rely on that flush for other
// data that it wrote to the same device before.
// Errors: kNoSpace when the region is full; after a failed sync every Apply fails until reopened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/disk/raw_volume.h"
#include "common/kv/kv_store.h"

namespace weir {

struct KvOptions {
  uint64_t cache_bytes = 32 << 20;
  uint64_t write_buffer_bytes = 0;  // 0: by the size of the region; 64 MiB in a directory
  bool compact = true;              // false: for a short look, tables stay as they are
  bool grows = false;               // the region is an image, which becomes larger when half full
};

Result<std::unique_ptr<KvStore>> OpenRocksKvStore(const std::string& directory,
                                                  const KvOptions& options);

// A KvStore that can say how much room is left. It has room while a third of the region is free:
// that much a compaction may take, and the records of deletes. Less may be free while RocksDB owes
// a flush or a compaction: AwaitRoom and AwaitFree wait for that, which nothing holds up meanwhile
// (IoMeter::SetUrgent); one thread at a time.
class RawKvStore : public KvStore {
 public:
  [[nodiscard]] virtual uint64_t free_bytes() = 0;
  [[nodiscard]] virtual uint64_t total_bytes() = 0;
  virtual bool AwaitFree(uint64_t bytes) { return free_bytes() >= bytes; }
  bool HasRoom() override { return free_bytes() >= total_bytes() / 3; }
  bool AwaitRoom() override { return AwaitFree(total_bytes() / 3); }
  // So much is written before the log is turned into a table.
  [[nodiscard]] virtual uint64_t write_buffer_bytes() = 0;
  // Who is asked for flushes and compactions; null: nobody. See RawVolume::SetMeter.
  virtual void SetMeter(std::shared_ptr<IoMeter> meter) = 0;
  [[nodiscard]] virtual uint64_t metered_bytes() = 0;
  [[nodiscard]] virtual uint64_t unmetered_bytes() = 0;
  // Reads every table and verifies its checksums; kCorrupt names the first that is damaged.
  virtual Status VerifyTables() = 0;
};

// Formats a region; what was there is lost.
Status FormatRawKv(BlockDevice& device, Region region);
// The device must outlive the store. kCorrupt if the region was never formatted.
Result<std::unique_ptr<RawKvStore>> OpenRawKvStore(BlockDevice& device, Region region,
                                                   const KvOptions& options);

}  // namespace weir
