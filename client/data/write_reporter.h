// WriteReporter: what FileIo tells the MDS about data, and asks it.
//
// Threads: any; callbacks with no lock held, on RPC threads or before the call returns.
#pragma once

#include <cstdint>
#include <functional>

#include "client/data/object_writer.h"
#include "client/data/range_io.h"
#include "client/vfs/inode_table.h"

namespace weir::client {

class WriteReporter {
 public:
  virtual ~WriteReporter() = default;
  // Of the map that is obeyed: when it tells of an eviction, FileIo::Evicted has run.
  [[nodiscard]] virtual uint64_t map_epoch() const = 0;
  // Answers its attributes; kStale when the file is gone, kStaleEpoch when the mount was evicted.
  virtual void ReportWrote(InodeId inode, const Inode::Report& report, bool commit,
                           std::function<void(Result<FileAttr>)> callback) = 0;
  // `callback` when the inode has the attributes that the MDS says it has now.
  virtual void AskAttributes(InodeId inode, WriteCallback callback) = 0;
  // Place of what the MDS has answered last; `callback` when all up to such a place is durable. Of
  // what is lost of it whoever stores that file hears.
  [[nodiscard]] virtual uint64_t last_order() const = 0;
  virtual void Commit(uint64_t order, InodeId inode, WriteCallback callback) = 0;
  // Space is kept up to `end`: the file is charged for it, or kQuota.
  struct AllocatedReport {
    uint64_t end = 0;
    bool keep_size = false;
    int64_t mtime_ns = 0;
    RightsLost lost;
    ClassId class_id;
    uint64_t epoch = 0;  // of the map, before it was known that the mount was not evicted
  };
  virtual void ReportAllocated(InodeId inode, const AllocatedReport& report,
                               const Allocation& allocation, WriteCallback callback) = 0;
  // Whether the file may reach `end`; answers how far it may, kQuota when not so far.
  virtual void AskRoom(InodeId inode, ClassId class_id, uint64_t end,
                       std::function<void(Result<uint64_t>)> callback) = 0;
};

}  // namespace weir::client
