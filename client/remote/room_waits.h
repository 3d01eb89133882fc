// RoomWaits: requests that met no room on an OSD while data of removed files is still to go.
//
// A removal is answered before the OSDs have deleted the data, so whoever removes a file on a full
// disk and writes another one would be told that there is no room. Who meets none therefore has the
// MDS asked how many removals are not done: while there are any he tries again, after 100 ms and
// then in longer and longer steps, for kLongest; once there are none, one last time. When somebody
// has waited in vain nobody waits for those same removals, which may be of an OSD that is away, for
// kLongest.
//
// Threads: any; `then` runs with no lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::client {

class RoomWaits {
 public:
  static constexpr Duration kLongest = std::chrono::seconds(10);
  static constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::seconds(1);

  // How many removals the OSDs have not done, as the MDS knows.
  using Ask = std::function<void(std::function<void(Result<uint64_t>)>)>;
  // Of one request, over all its tries.
  struct Wait {
    TimePoint until;  // set when it first meets no room
    Duration pause = kFirstPause;
    bool last = false;
    std::function<bool()> gone;  // for good: nobody wants it any more; may be empty
  };
  using Then = std::function<void(bool again)>;

  // Without `ask` nobody waits.
  RoomWaits(Clock& clock, Ask ask) : clock_(clock), ask_(std::move(ask)) {}

  // It met no room: `then` says whether it is to try again. `wait` lives until then.
  void Await(Wait* wait, Then then);
  // Who is gone now waits no more: `then(false)`.
  void EndGone();
  // Some times a second.
  void Tick();
  // Nobody waits any more.
  void Stop();

 private:
  struct Waiter {
    Wait* wait;
    Then then;
    TimePoint due;  // he is told by what is asked from then on
  };
  static bool IsGone(const Wait& wait) { return wait.gone && wait.gone(); }
  // Of those waiters; `in_vain`: they have waited long enough.
  template <typename Ends>
  void End(Ends ends, bool in_vain);
  bool Enter(Wait* wait, Then* then);
  void AskIfDue();
  void WaitedInVainLocked(TimePoint now);
  void Answered(TimePoint asked, const Result<uint64_t>& pending);

  Clock& clock_;
  const Ask ask_;
  std::mutex mutex_;
  bool stopped_ = false;
  bool asking_ = false;
  std::vector<Waiter> waiters_;
  uint64_t pending_ = 0;  // as was last heard
  // So many were pending when somebody had waited long enough, last at that moment.
  std::optional<uint64_t> in_vain_;
  TimePoint in_vain_since_;
};

}  // namespace weir::client
