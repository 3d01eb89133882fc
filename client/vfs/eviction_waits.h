// EvictionWaits: opens that the MDS has refused because it has evicted this mount, which does not
// know it yet. What they hand out would be taken for opened before that, and fail: they are asked
// for again when the mount has heard of it.
//
// Threads: any; `then` runs in Tick or Stop, with no lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::client {

class EvictionWaits {
 public:
  using Then = std::function<void(const Status&)>;

  // The open was asked for under a map of that epoch. kTimedOut after `until`.
  void Await(uint64_t epoch, TimePoint until, Then then);
  // A map of that epoch says that this mount was evicted.
  void Heard(uint64_t epoch);
  void Tick(TimePoint now);
  // The others get kCancelled, also those that come later.
  void Stop();

 private:
  struct Wait {
    uint64_t epoch;
    TimePoint until;
    Then then;
  };
  std::mutex mutex_;
  std::list<Wait> waits_;
  uint64_t heard_ = 0;
  bool stopped_ = false;
};

}  // namespace weir::client
