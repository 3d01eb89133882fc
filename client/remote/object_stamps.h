// ObjectStamps: what a request tells its OSD besides what it wants: the DSFQ delay of every member
// that it reaches, in the unit of that OSD's cost, the number of a change and the floors below
// which nothing is open (common/replication/op_ids.h), and under which map it was sent.
//
// Delay and number are of the first time that it leaves, and stay: a retry is the same request.
//
// Pure. Threads: not safe; under the lock of its owner. Errors: none.
#pragma once

#include <cstdint>
#include <memory>

#include "client/qos/delay_tracker.h"
#include "client/remote/object_sender.h"
#include "client/remote/pending_op.h"
#include "common/placement/cluster_map.h"
#include "common/replication/op_ids.h"

namespace weir::client {

class ObjectStamps {
 public:
  // In the name of `session` objects change, with numbers above `ids_above`; session 0: operations
  // have none.
  ObjectStamps(uint64_t session, uint64_t ids_above) : ids_(session, ids_above) {}

  // A newer map. Forgets the streams of classes that are gone.
  void SetMap(std::shared_ptr<const ClusterMap> map);
  // Of a request that leaves now. Requires: a map, and a path.
  [[nodiscard]] ObjectSender::Stamp Leaves(PendingOp* pending);
  // It will not be asked for any more: it holds no floor back.
  void End(PendingOp* pending);

 private:
  uint64_t DelayOf(ClassId id, OsdId osd, uint64_t bytes);

  std::shared_ptr<const ClusterMap> map_;
  uint64_t cluster_hash_ = 0;
  replication::OpIds ids_;
  DelayTracker tokens_sent_;
  DelayTracker requests_sent_;
};

}  // namespace weir::client
