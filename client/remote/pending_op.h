// PendingOp: an object request between its Submit and its end, over all its tries.
//
// Ownership: shared by ObjectIo, by the window that it waits in and by the answer that is awaited.
// Threads: not safe; under the lock of ObjectIo, but for `op`, which does not change.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "client/remote/object_sender.h"
#include "client/remote/room_waits.h"
#include "common/qos/flow_order.h"

namespace weir::client {

struct PendingOp;
using PendingOpPtr = std::shared_ptr<PendingOp>;

struct PendingOp : FlowOrder::Item {
  ObjectOp op;
  TimePoint asked;
  TimePoint deadline = TimePoint::Max();

  // Where it goes, by the chains of its last try.
  OsdId osd;
  uint32_t slot = 0;           // of its object
  uint64_t chain_version = 0;  // by which the OSD was chosen
  std::vector<OsdId> path;     // whom it reaches; the first is that OSD

  // Of ObjectWindows.
  std::list<PendingOpPtr>::iterator place;  // while it waits in a window
  bool bounded = false;                     // counts for the latency bound of its class
  TimePoint left;                           // the last time; valid once it was sent

  // Of ObjectStamps.
  std::vector<uint64_t> delays;  // of those in `path`; empty: not sent yet
  uint64_t number = 0;           // of a change; 0: it has none yet

  uint32_t checksum_retries = 0;
  bool again = false;  // it may have been done before
  RoomWaits::Wait room;
};

}  // namespace weir::client
