// ObjectIo: every object request of a mount, through one window per (class, OSD).
//
// A window lets at most `window_bytes` (8 MiB, then what the OSD grants) and 128 requests be in
// flight, always at least one request; who leaves next is fair between users and their programs
// (common/qos/flow_order.h), light requests may leave a little beyond it, and no class is ever
// behind another. The DSFQ delay, in the unit of the OSD's cost, is taken from a tracker when a
// request really leaves; a retry carries that of its first sending. Requests refused for a stale
// epoch or a vanished endpoint go out again under the next map, at once when the refusal brought a
// newer chain; a wrong checksum on a read is retried once, then kCorrupt.
//
// What changes an object is numbered when it leaves first, and keeps its number until it is
// answered or given up (common/replication/op_ids.h).
//
// A class with a limit over several OSDs leaves, the next request that fits its window first, as
// this mount's part of the limit lets it (client/qos/limit_window.h); what one OSD enforces alone
// is left to that OSD.
//
// A change that meets no room is tried again while removals are under way: room_waits.h.
//
// Threads: any; callbacks run with no lock held. Errors: with a timeout, kTimedOut for an OSD that
// is unreachable that long; without one, requests wait until it is back.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "client/qos/delay_tracker.h"
#include "client/qos/limit_window.h"
#include "client/qos/user_parts.h"
#include "client/remote/disk_room.h"
#include "client/remote/mount_meter.h"
#include "client/remote/object_sender.h"
#include "client/remote/room_waits.h"
#include "client/remote/slot_chains.h"
#include "common/base/inheriting_mutex.h"
#include "common/placement/cluster_map.h"
#include "common/qos/flow_order.h"
#include "common/qos/limit_share.h"
#include "common/replication/op_ids.h"

namespace weir::client {

// Files that a crash may still take.
class NewFiles {
 public:
  virtual ~NewFiles() = default;
  [[nodiscard]] virtual bool IsNew(InodeId inode) const = 0;
  // `done` when those that are new now are not any more.
  virtual void AwaitDurable(std::function<void(Status)> done) = 0;
};

class ObjectIo {
 public:
  struct Options {
    uint64_t first_window_bytes = 8 << 20;
    uint32_t window_requests = 128;
    // How far light requests may leave beyond that.
    uint64_t beyond_bytes = 256 << 10;
    uint32_t beyond_requests = 64;
    Duration timeout = Duration::max();
    uint64_t session = 0;    // in whose name objects change; 0: operations have no ids
    uint64_t ids_above = 0;  // of a process that goes on with that session
    // Asks for a SendDue at that moment; called under a lock. Empty: the OSDs alone hold limits.
    std::function<void(TimePoint)> wake_by;
    RoomWaits::Ask ask_removals;
    NewFiles* new_files = nullptr;  // what changes one of these waits; null: there are none
  };
  struct Counters {
    uint64_t sent = 0;
    uint64_t retried = 0;
    uint64_t checksum_errors = 0;
    uint64_t expired = 0;
  };

  // What a class has under way, over all OSDs.
  struct ClassLoad {
    uint64_t flying_bytes = 0;
    uint64_t flying_requests = 0;
    uint64_t waiting_requests = 0;  // for room in a window, or for the limit of the class
    uint64_t answered_bytes = 0;    // since the start
    uint64_t answered_requests = 0;
  };

  ObjectIo(Clock& clock, ObjectSender& sender, Options options);
  ~ObjectIo();

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
  // Sends what a limit held back and may go now; says when the next may, Max for not before more
  // happens.
  TimePoint SendDue();
  // What this mount has of limits over several OSDs; of a class that is not named nothing, which is
  // one request a second. An older `order` than the last changes nothing: threads that bring parts
  // may overtake each other.
  void SetLimitParts(std::map<ClassId, double> parts, uint64_t order);
  // What it did with them, and what waits.
  [[nodiscard]] std::map<ClassId, LimitShare::Counts> LimitCounts();
  // Sends again what failed for a passing reason; expires what waited too long.
  void Tick();
  // Everything not yet sent ends with kCancelled, and nothing is retried any more.
  void Stop();

  [[nodiscard]] uint64_t InFlightBytes(ClassId class_id, OsdId osd) const;
  [[nodiscard]] Counters counters() const;
  // Where the time of each class goes on this side, since start.
  [[nodiscard]] std::map<ClassId, MountClassTimes> Times();
  [[nodiscard]] std::map<ClassId, ClassLoad> Loads() const;

 private:
  struct Pending;
  using PendingPtr = std::shared_ptr<Pending>;
  struct Pending : FlowOrder::Item {
    ObjectOp op;
    std::list<PendingPtr>::iterator place;  // while it waits in a window
    OsdId osd;
    TimePoint deadline = TimePoint::Max();
    uint32_t slot = 0;             // of its object
    uint64_t chain_version = 0;    // by which the OSD was chosen
    std::vector<OsdId> path;       // whom it reaches; the first is that OSD
    std::vector<uint64_t> delays;  // of these; empty: not sent yet
    uint64_t number = 0;           // of a change; 0: it has none yet
    TimePoint asked;
    bool bounded = false;  // counts for the latency bound of its class
    TimePoint left;        // the last time; valid once it was sent
    uint32_t checksum_retries = 0;
    bool again = false;  // it may have been done before
    RoomWaits::Wait room;
  };
  struct Window {
    ClassId class_id;
    std::list<PendingPtr> queue;  // in order of arrival
    FlowOrder flows;              // in which it leaves
    uint64_t limit_bytes = 0;
    uint64_t waiting_bytes = 0;  // in the queue
    uint64_t flying_bytes = 0;
    uint32_t flying_requests = 0;
    uint64_t answered_bytes = 0;
    uint64_t answered_requests = 0;
    uint64_t last_turn = 0;  // the number of its last departure
    Duration waited{0};      // the longest that an answer took, of which the OSD was not told yet
    TimePoint waited_at;
    uint32_t owed_in_row = 0;  // turns out of the order of flows
  };
  using Key = std::pair<ClassId, OsdId>;
  using Windows = std::map<Key, Window>;
  struct Turn {
    Windows::iterator window;
    Pending* next = nullptr;
  };
  struct Departure {
    PendingPtr pending;
    ObjectSender::Stamp stamp;
  };

  void Send(ObjectOp op);
  void Route(PendingPtr pending);
  static void Queue(Window* window, PendingPtr pending);
  // The next to leave, if it fits; null: nobody does. Looks at users' parts: once per departure.
  [[nodiscard]] Pending* NextIn(const Window& window, TimePoint now) const;
  [[nodiscard]] bool Fits(const Window& window, const Pending& next) const;
  // Whether a request that joins that window counts for a latency bound of its class.
  [[nodiscard]] bool IsBounded(const Pending& pending, const Window& window) const;
  // Whose turn it is of the windows of a class with a limit, and what leaves; null: nobody's.
  Turn NextOf(ClassId id, TimePoint now);
  void TakeDepartures(const Key& key, Window& window, TimePoint now, std::vector<Departure>* out);
  // Of all windows of a class with a limit; says when more may leave without an answer, Max: all
  // has left that fits its window.
  TimePoint TakeLimited(ClassId id, LimitWindow& limit, TimePoint now, std::vector<Departure>* out);
  void TakeNext(const Key& key, Window& window, Pending* next, TimePoint now,
                std::vector<Departure>* out);
  void NoteWaited(const Pending& pending, Duration limited, TimePoint now, Window* window);
  void NoteBack(const Pending& pending, const Result<ObjectOutcome>& result, TimePoint now);
  void SetPartsLocked(TimePoint now);
  void SetLimitsLocked(TimePoint now, std::vector<Departure>* out);
  [[nodiscard]] uint64_t LimitOf(const ClassSpec& spec) const;
  void SendAll(std::vector<Departure> departures);
  void OnReply(const PendingPtr& pending, const Key& key, ObjectAnswer answer);
  enum class Then : uint8_t { kEnd, kLater, kNow };
  // What becomes of a request that was answered so.
  Then AfterLocked(const PendingPtr& pending, ObjectAnswer* answer);
  [[nodiscard]] ObjectSender::Stamp StampLocked(Pending& pending, uint64_t bytes);
  [[nodiscard]] uint64_t DelayLocked(ClassId id, OsdId osd, uint64_t bytes);
  // It will not be asked for any more.
  void EndNumberLocked(Pending& pending);
  std::vector<PendingPtr> TakeExpiredLocked(TimePoint now);
  template <typename Gone>
  void EndUnsent(Gone gone, const Status& status);
  // Until there is a map, or the next Tick.
  void Park(PendingPtr pending, TimePoint now);
  template <typename Predicate>
  void EraseParked(Predicate gone, TimePoint now);
  template <typename Predicate>
  void EraseFrom(ClassId id, Window& window, Predicate gone, TimePoint now);

  Clock& clock_;
  ObjectSender& sender_;
  const Options options_;
  mutable InheritingMutex mutex_;
  bool stopped_ = false;
  std::shared_ptr<const ClusterMap> map_;
  SlotChains chains_;
  replication::OpIds ids_;
  uint64_t cluster_hash_ = 0;
  DelayTracker tokens_sent_;
  DelayTracker requests_sent_;
  Windows windows_;
  std::vector<Turn> turns_;  // of NextOf, kept for its capacity
  std::map<ClassId, LimitWindow> limits_;
  std::map<ClassId, double> limit_parts_;
  uint64_t limit_parts_order_ = 0;
  std::map<ClassId, UserParts> parts_;  // of classes that promise users some
  std::vector<PendingPtr> parked_;      // wait for a map or for the next Tick
  Counters counters_;
  MountMeter meter_;
  DiskRoom room_;
  RoomWaits room_waits_;
};

}  // namespace weir::client
