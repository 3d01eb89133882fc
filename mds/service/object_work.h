// ObjectWork: what the namespace has decided and the OSDs must still do: purge the data of removed
// files (class system.purge, in the background, bounded) and cut off truncated ones (class of the
// file; somebody waits). Tried until done; what a restart interrupts is in the namespace store and
// comes again. Threads: every call from any thread; the callbacks run on any thread, without the
// lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/base/time.h"
#include "common/placement/cluster_map.h"
#include "common/replication/op_ids.h"
#include "mds/ns/operation.h"
#include "mds/service/osd_port.h"

namespace weir::mds {

class ObjectWork {
 public:
  struct Callbacks {
    std::function<std::shared_ptr<const ClusterMap>()> map;
    std::function<void(uint64_t inode)> purged;
    std::function<void(OsdId osd, uint64_t freed_bytes)> freed;  // by a step of a purge
    std::function<void(uint64_t inode, uint64_t freed_bytes)> truncated;
  };
  ObjectWork(OsdPort& osds, Clock& clock, Callbacks callbacks);

  void Purge(const PurgeJob& job);
  void Truncate(const TruncateJob& job);
  void Tick();  // sends again what failed
  // No callback runs and nothing is sent any more.
  void Stop();
  [[nodiscard]] size_t pending_purges() const;
  // What their data may still take, of all OSDs. A step that deletes objects of several files does
  // not say what it freed: those count until the file is purged.
  [[nodiscard]] uint64_t bytes_to_free() const;

  static constexpr size_t kPurgesInFlightMax = 256;
  // A purge asks an OSD for one object and, if there are more, for so many at a time: each request
  // takes its turn in the pipeline, at the price of what it deletes.
  static constexpr uint32_t kObjectsAtOnce = 16;
  static constexpr Duration kRetryAfter = std::chrono::milliseconds(500);

 private:
  struct Item {
    uint64_t inode = 0;
    bool purge = false;
    std::vector<ObjectOrder> orders;  // not done yet and not on their way
    size_t in_flight = 0;
    uint64_t freed_bytes = 0;
    uint64_t to_free = 0;  // of a purge: its part of bytes_to_free
    TimePoint retry_at = TimePoint::Max();
  };
  using Shared = std::shared_ptr<Item>;
  std::vector<ObjectOrder> OrdersOf(const PurgeJob& job) const;
  std::vector<ObjectOrder> OrdersOf(const TruncateJob& job) const;
  void Start(const Shared& item);
  void Send(const Shared& item);
  void SendOne(const Shared& item, ObjectOrder order);
  void EndLocked(const ObjectOrder& order);
  void Answered(const Shared& item, const ObjectOrder& order, const OrderEnd& end);
  void Finished(const Shared& item);
  void Freed(const Shared& item, OsdId osd, uint64_t freed_bytes);
  void StartNextPurge();

  OsdPort& osds_;
  Clock& clock_;
  const Callbacks callbacks_;
  mutable std::mutex mutex_;
  bool stopped_ = false;
  replication::OpIds ids_;  // of this process: what a restart interrupts is asked for anew
  std::deque<PurgeJob> waiting_;
  size_t purging_ = 0;
  uint64_t to_free_ = 0;
  std::vector<Shared> failed_;
};

}  // namespace weir::mds
