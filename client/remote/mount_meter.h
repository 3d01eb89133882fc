// MountMeter: where the time of each class goes on this side: in the windows, held back by its
// limit, on the network.
//
// Time in the windows is spent step by step for all that stand there, so that requests count that
// are still waiting; while the limit lets nothing leave, it is what all of them wait for. The time
// on the network is known when the answer says how long the OSD had it, or when the way broke; that
// of those who wait for a way is spent step by step.
//
// Pure. Threads: not safe; under the lock of its owner.
#pragma once

#include <map>

#include "common/qos/class_times.h"

namespace weir::client {

class MountMeter {
 public:
  void Queued(ClassId id, TimePoint now);
  // `count` requests left the window's queue without going to an OSD.
  void Dropped(ClassId id, uint64_t count, TimePoint now);
  void Sent(ClassId id, TimePoint now);
  // Whether the limit of the class is why nothing more leaves, from now on.
  void SetHeldByLimit(ClassId id, bool held, TimePoint now);
  // One that was sent is back, for whatever reason.
  void Back(ClassId id, TimePoint now);
  // It waits for a way to an OSD, and does so no more.
  void Parked(ClassId id, TimePoint now);
  void Unparked(ClassId id, TimePoint now);
  // The way to the OSD broke, `away` after it was sent.
  void Lost(ClassId id, Duration away);
  // It was answered: `away` since it was sent last, `server` of it at the OSD.
  void Answered(ClassId id, uint64_t bytes, Duration away, Duration server);

  // Of the classes that had I/O.
  std::map<ClassId, MountClassTimes> Times(TimePoint now);

 private:
  struct Class {
    uint64_t queued = 0;
    uint64_t flying = 0;
    uint64_t parked = 0;
    bool held_by_limit = false;
    TimePoint since;
    MountClassTimes times;
  };
  Class& Advance(ClassId id, TimePoint now);
  static void Spend(Class* one, TimePoint now);

  std::map<ClassId, Class> classes_;
};

}  // namespace weir::client
