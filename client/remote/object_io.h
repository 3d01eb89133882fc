// ObjectIo: every object request of a mount, through one window per (class, OSD).
//
// It chooses the OSD (slot_chains.h), sends what the windows let leave (object_windows.h) with what
// belongs to it (object_stamps.h), and says what becomes of an answer. Requests refused for a stale
// epoch or a vanished endpoint go out again under the next map, at once when the refusal brought a
// newer chain; a wrong checksum on a read is retried once, then kCorrupt. A change that meets no
// room is tried again while removals are under way: room_waits.h.
//
// Threads: any; callbacks run with no lock held. Errors: with a timeout, kTimedOut for an OSD that
// is unreachable that long; without one, requests wait until it is back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "client/remote/disk_room.h"
#include "client/remote/mount_meter.h"
#include "client/remote/object_sender.h"
#include "client/remote/object_stamps.h"
#include "client/remote/object_windows.h"
#include "client/remote/pending_op.h"
#include "client/remote/room_waits.h"
#include "client/remote/slot_chains.h"
#include "common/base/inheriting_mutex.h"
#include "common/placement/cluster_map.h"
#include "common/qos/limit_share.h"

namespace weir::client {

// Files that a crash may still take, and those of which OSDs have nothing yet.
class NewFiles {
 public:
  virtual ~NewFiles() = default;
  // An object of the file is about to be changed.
  virtual void Changes(InodeId inode) = 0;
  // Also one that is lost.
  [[nodiscard]] virtual bool IsNew(InodeId inode) const = 0;
  // `done` when those that are new now are not any more, for a change of that one.
  virtual void AwaitDurable(InodeId inode, std::function<void(Status)> done) = 0;
};

class ObjectIo {
 public:
  struct Options {
    ObjectWindows::Options windows;  // whose wake_by asks for a SendDue; called under a lock
    Duration timeout = Duration::max();
    uint64_t session = 0;    // in whose name objects change; 0: operations have no ids
    uint64_t ids_above = 0;  // of a process that goes on with that session
    RoomWaits::Ask ask_removals;
    NewFiles* new_files = nullptr;  // see Submit; null: there are none
  };
  struct Counters {
    uint64_t sent = 0;
    uint64_t retried = 0;
    uint64_t checksum_errors = 0;
    uint64_t expired = 0;
  };

  using ClassLoad = ObjectWindows::ClassLoad;

  ObjectIo(Clock& clock, ObjectSender& sender, Options options);
  ~ObjectIo();

  // What changes a file that a crash may still take waits until that cannot be.
  // A copy whose source is on another OSD by the time that it could leave ends with kNotSupported.
  void Submit(ObjectOp op);
  // Whether two objects of a pool lie on the same OSD now.
  [[nodiscard]] bool Together(PoolId pool, ObjectId one, ObjectId other) const;
  // The least that any of the disks said lately that it still takes; UINT64_MAX: none said so.
  [[nodiscard]] uint64_t least_room() const { return room_.least(); }
  // How many OSDs objects of the pool lie on.
  [[nodiscard]] size_t OsdsOf(PoolId pool) const;
  // A newer map: what waited for it goes out again. Forgets the streams of classes that are gone.
  void SetMap(std::shared_ptr<const ClusterMap> map);
  // Ends with kCancelled what is abandoned and not sent, or waits for room.
  void DropAbandoned();
  // Ends with kStale what is fenced and not sent, or waits for room. Before the map that tells of
  // it is set.
  void DropFenced();
  // Sends and gives what a limit held back and may go now; says when the next may, Max for not
  // before more happens.
  TimePoint SendDue();
  // What this mount has of limits over several OSDs; of a class that is not named nothing, which is
  // one request a second. An older `order` than the last changes nothing: threads that bring parts
  // may overtake each other.
  void SetLimitParts(std::map<ClassId, double> parts, uint64_t order);
  // What it did with them, and what waits.
  [[nodiscard]] std::map<ClassId, LimitShare::Counts> LimitCounts();
  // Sends again what failed for a passing reason; expires what waited too long.
  void Tick();
  // Everything not yet sent ends with kCancelled, nothing is retried or held back any more.
  void Stop();

  [[nodiscard]] uint64_t InFlightBytes(ClassId class_id, OsdId osd) const;
  [[nodiscard]] Counters counters() const;
  // Where the time of each class goes on this side, since start.
  [[nodiscard]] std::map<ClassId, MountClassTimes> Times();
  [[nodiscard]] std::map<ClassId, ClassLoad> Loads() const;

 private:
  void Send(ObjectOp op);
  void Route(PendingOpPtr pending);
  void Deliver(ObjectWindows::Departures* departures);
  void OnReply(const PendingOpPtr& pending, ObjectAnswer answer);
  enum class Then : uint8_t { kEnd, kLater, kNow };
  // What becomes of a request that was answered so.
  Then AfterLocked(const PendingOpPtr& pending, ObjectAnswer* answer);
  std::vector<PendingOpPtr> TakeExpiredLocked(TimePoint now);
  // Takes those that have not left from wherever they wait, in order.
  template <typename Predicate>
  void TakeUnsentLocked(Predicate gone, TimePoint now, std::vector<PendingOpPtr>* out);
  template <typename Gone>
  void EndUnsent(Gone gone, const Status& status);
  // Until there is a map, or the next Tick.
  void Park(PendingOpPtr pending, TimePoint now);
  template <typename Predicate>
  void EraseParked(Predicate gone, TimePoint now);

  Clock& clock_;
  ObjectSender& sender_;
  const Options options_;
  mutable InheritingMutex mutex_;
  bool stopped_ = false;
  std::shared_ptr<const ClusterMap> map_;
  SlotChains chains_;
  MountMeter meter_;
  ObjectStamps stamps_;
  ObjectWindows windows_;
  std::vector<PendingOpPtr> parked_;  // wait for a map or for the next Tick
  Counters counters_;                 // but `sent`
  DiskRoom room_;
  RoomWaits room_waits_;
};

}  // namespace weir::client
