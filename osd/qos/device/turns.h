// DeviceTurns: whose turn it is on a disk with a head, on which the way back to a small reader
// costs as much as a megabyte. One of two rules makes the turns, the operator's choice:
//
//   bursts         a work-conserving disk: others go together, between reads (bursts.h)
//   anticipation   the disk waits for the reader who is about to ask again (anticipation.h)
//
// Both keep the disk for the reader until a moment (KeptUntil); the surplus of others waits for it.
// They are two boxes since they disagree in what a turn is made of: bytes and reads there, time
// here; recordings of both are in tests/decisions.
//
// Threads: the scheduler's owner. Pure.
#pragma once

#include <algorithm>
#include <optional>

#include "osd/qos/device/anticipation.h"
#include "osd/qos/device/bursts.h"
#include "osd/qos/request.h"

namespace weir::osd::qos {

class DeviceTurns {
 public:
  void SetAnticipates(bool anticipates);

  // Until when the disk is kept for its reader; a time that has passed: it is not.
  [[nodiscard]] TimePoint KeptUntil() const {
    return std::max(anticipation_.kept_until(), bursts_.KeptUntil());
  }
  // Others go in bursts.
  [[nodiscard]] bool HasBursts(TimePoint now) const { return bursts_.Acts(now); }
  [[nodiscard]] bool anticipates() const { return anticipates_; }

  // `light_read`: a small read of a light flow; `far`: such a read takes the disk milliseconds.
  void Started(Request* request, bool light_read, bool far, TimePoint now);
  void Landed(Request* request);
  // `others_work`: requests of other classes were started and are not complete.
  void Completed(const Request& request, ClassId owner, bool light_read, bool others_work,
                 TimePoint now);

  // How long the commit of a request that belongs to a burst may wait for others to share its
  // flush; `more`: something waits for its turn.
  [[nodiscard]] std::optional<Duration> Patience(const Request& request, bool more) const;

 private:
  bool anticipates_ = false;
  Anticipation anticipation_;
  Bursts bursts_;
};

}  // namespace weir::osd::qos
