// ObjectWindows: which of the object requests that wait in a mount leaves next.
//
// There is one window per (class, OSD). It lets at most `first_window_bytes`, later what the OSD
// grants, and `window_requests` requests be in flight, always at least one. Who leaves next is fair
// between users and their programs (common/qos/flow_order.h), but seven of eight turns go to
// whoever is below his part of what the class promises users (client/qos/user_parts.h). Light
// requests may leave a little beyond the window, and no class is ever behind another.
//
// A class with a limit over several OSDs leaves, the next request that fits its window first, as
// this mount's part of the limit lets it, and its answers are given as that lets them
// (client/qos/limit_window.h); what one OSD enforces alone is left to that OSD.
//
// Who leaves is stamped at that moment (object_stamps.h). Requests that leave and answers that were
// held back are handed out in `Departures`, for the owner to send and to give when it has let go of
// its lock.
//
// Pure. Threads: not safe; under the lock of its owner. Errors: none. Requires: a map, before
// anything joins.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "client/qos/limit_window.h"
#include "client/qos/osd_turns.h"
#include "client/qos/user_parts.h"
#include "client/remote/mount_meter.h"
#include "client/remote/object_stamps.h"
#include "client/remote/pending_op.h"
#include "common/placement/cluster_map.h"
#include "common/qos/flow_order.h"
#include "common/qos/limit_share.h"

namespace weir::client {

class ObjectWindows {
 public:
  struct Options {
    uint64_t first_window_bytes = 8 << 20;
    uint32_t window_requests = 128;
    // How far light requests may leave beyond that.
    uint64_t beyond_bytes = 256 << 10;
    uint32_t beyond_requests = 64;
    // Asks for a TakeDue at that moment. Empty: the OSDs alone hold limits.
    std::function<void(TimePoint)> wake_by;
  };
  // What a class has under way, over all OSDs.
  struct ClassLoad {
    uint64_t flying_bytes = 0;
    uint64_t flying_requests = 0;
    uint64_t waiting_requests = 0;  // for room in a window, or for the limit of the class
    uint64_t answered_bytes = 0;    // since the start
    uint64_t answered_requests = 0;
  };
  struct Departure {
    PendingOpPtr pending;
    ObjectSender::Stamp stamp;
  };
  // To who asked.
  struct Answer {
    PendingOpPtr pending;
    Result<ObjectOutcome> result;
    TimePoint arrived;
  };
  struct Departures {
    std::vector<Departure> requests;
    std::vector<Answer> answers;
  };
  // Owners see it as what Back returns, and no more.
  struct Window {
    ClassId class_id;
    OsdId osd;
    std::list<PendingOpPtr> queue;  // in order of arrival
    FlowOrder flows;                // in which it leaves
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

  // Both outlive it.
  ObjectWindows(ObjectStamps& stamps, MountMeter& meter, Options options);

  // The users' parts and the limits of a newer map; what leaves since a limit rose or went.
  void SetMap(std::shared_ptr<const ClusterMap> map, TimePoint now, Departures* out);
  // What this mount has of limits over several OSDs, and what leaves for it; of a class that is not
  // named nothing, which is one request a second. An older `order` than the last changes nothing.
  void SetLimitParts(std::map<ClassId, double> parts, uint64_t order, TimePoint now,
                     Departures* out);
  // What it did with them, and what waits.
  [[nodiscard]] std::map<ClassId, LimitShare::Counts> LimitCounts(TimePoint now);

  // It waits for its turn, which may have come. Requires: it knows where it goes.
  void Join(PendingOpPtr pending, TimePoint now, Departures* out);
  // It is back, with that answer; what it made room for is for a TakeDepartures of its window,
  // which this returns.
  Window& Back(PendingOp* pending, const Result<ObjectOutcome>& result, TimePoint now);
  void TakeDepartures(Window& window, TimePoint now, Departures* out);
  // Of what was answered well, after Back: whether the limit of its class lets nobody have that
  // yet; then it is taken, and handed out when it may be given.
  bool HoldsBack(const PendingOpPtr& pending, Result<ObjectOutcome>* result, TimePoint now);
  // What a limit held back and may go now; says when the next may, Max for not before more happens.
  TimePoint TakeDue(TimePoint now, Departures* out);
  // All answers that are held back.
  void TakeHeld(Departures* out);
  // Those leave the queues and go nowhere.
  template <typename Predicate>
  void Erase(Predicate gone, TimePoint now) {
    for (auto& [key, window] : windows_) EraseFrom(window, gone, now);
  }

  [[nodiscard]] uint64_t sent() const { return sent_; }
  [[nodiscard]] uint64_t InFlightBytes(ClassId class_id, OsdId osd) const;
  [[nodiscard]] std::map<ClassId, ClassLoad> Loads() const;

 private:
  using Key = std::pair<ClassId, OsdId>;
  struct Turn {
    Window* window = nullptr;
    PendingOp* next = nullptr;
  };
  struct Limit {
    LimitWindow window;
    std::deque<Answer> held;  // in order of arrival
  };

  static void Queue(Window* window, PendingOpPtr pending);
  // The next to leave, if it fits; null: nobody does. Looks at users' parts: once per departure.
  [[nodiscard]] PendingOp* NextIn(const Window& window, TimePoint now) const;
  [[nodiscard]] bool Fits(const Window& window, const PendingOp& next) const;
  // Whether a request that joins that window counts for a latency bound of its class.
  [[nodiscard]] bool IsBounded(const PendingOp& pending, const Window& window) const;
  // Whose turn it is of the windows of a class with a limit, and what leaves; null: nobody's.
  Turn NextOf(ClassId id, TimePoint now);
  // Of all windows of a class with a limit; says when more may leave without an answer, Max: all
  // has left that fits its window.
  TimePoint TakeLimited(ClassId id, Limit& limit, TimePoint now, Departures* out);
  // The answers that may be given; says when the next may.
  static TimePoint TakeAnswers(Limit& limit, TimePoint now, Departures* out);
  void TakeNext(Window& window, PendingOp* next, TimePoint now, Departures* out);
  void NoteWaited(const PendingOp& pending, Duration limited, TimePoint now, Window* window);
  void NoteBack(const PendingOp& pending, const Result<ObjectOutcome>& result, TimePoint now);
  void SetParts(TimePoint now);
  void SetLimits(TimePoint now, Departures* out);
  [[nodiscard]] uint64_t LimitOf(const ClassSpec& spec) const;
  template <typename Predicate>
  void EraseFrom(Window& window, Predicate gone, TimePoint now);

  ObjectStamps& stamps_;
  MountMeter& meter_;
  const Options options_;
  std::shared_ptr<const ClusterMap> map_;
  std::map<Key, Window> windows_;  // none is ever removed
  std::vector<Turn> turns_;        // of NextOf, kept for their capacity
  std::vector<OsdTurn> osd_turns_;
  std::map<ClassId, Limit> limits_;
  std::map<ClassId, double> limit_parts_;
  uint64_t limit_parts_order_ = 0;
  std::map<ClassId, UserParts> parts_;  // of classes that promise users some
  uint64_t sent_ = 0;
};

template <typename Predicate>
void ObjectWindows::EraseFrom(Window& window, Predicate gone, TimePoint now) {
  size_t count = 0;
  for (auto it = window.queue.begin(); it != window.queue.end();) {
    const auto place = it++;
    if (!gone(*place)) continue;
    window.flows.Leave(place->get());
    window.waiting_bytes -= (*place)->op.cost();
    window.queue.erase(place);
    ++count;
  }
  if (count > 0) meter_.Dropped(window.class_id, count, now);
}

}  // namespace weir::client
