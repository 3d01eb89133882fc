// OsdPort: how the MDS tells OSDs to cut off or delete objects. RPC in a daemon (rpc_osd_port.h), a
// recorder in tests.
// Threads: Send from any; `done` runs exactly once on any thread, possibly before Send returns.
#pragma once

#include <functional>
#include <optional>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/placement/cluster_map.h"
#include "common/replication/messages.h"

namespace weir::mds {

struct ObjectOrder {
  enum class Kind { kTruncate, kDeleteInode } kind = Kind::kTruncate;
  OsdId osd;
  InodeId inode;
  uint64_t index = 0;        // kTruncate: the object; kDeleteInode: the first that goes
  uint32_t objects_max = 0;  // kDeleteInode: so many at most; 0: all
  uint64_t size = 0;         // kTruncate: what is left of it
  ClassId charged_to;
  TierName tier{};  // kTruncate: where the object lies; kDeleteInode goes to all
  PoolId pool{};
  std::optional<uint32_t> slot{};  // kTruncate: of the object
  uint64_t chain_version = 0;      // of that slot
  // The same whenever it is sent. Session 0: none, as of first steps of purges.
  replication::OpId op{};
  replication::IdFloors floors{};

  // The first step of a purge, which finds all that there is of most files. Whatever repeats it
  // does no harm, as numbers of inodes are never given twice.
  [[nodiscard]] bool IsFirstStep() const {
    return kind == Kind::kDeleteInode && index == 0 && objects_max == 1;
  }
};

struct OrderEnd {
  OrderEnd(Status how, uint64_t next = 0, uint64_t freed = 0)  // NOLINT: implicit by design
      : status(std::move(how)), next_index(next), freed_bytes(freed) {}
  Status status;
  uint64_t next_index;   // kDeleteInode: the first that is left; 0: none
  uint64_t freed_bytes;  // of blocks; only of an order that stands alone in its request
};

class OsdPort {
 public:
  virtual ~OsdPort() = default;
  // `map` tells where the OSD is; it need not outlive the call.
  virtual void Send(const ClusterMap& map, const ObjectOrder& order,
                    std::function<void(OrderEnd)> done) = 0;
  // Lets go of connections that nobody uses any more; from one background thread.
  virtual void Tick() {}
  // Ends what is under way: each `done` that has not run does so before it returns. A Send after it
  // may be refused.
  virtual void Stop() {}
};

}  // namespace weir::mds
