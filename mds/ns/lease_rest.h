// LeaseRest: how long nobody gets leases on what others keep changing.
//
// A lease that is asked back costs its holder and whoever waits for it a round trip. So after that
// there is a rest, which begins anew with every change: short at first, for a change now and then
// shall not take everybody's caches for seconds; twice as long each time that the leases given
// after a rest were in the way again within four times its length. So recalls are a fifth of the
// time apart that a rest takes, at least, and whoever takes turns all the time gets none.
//
// Pure.
#pragma once

#include <algorithm>

#include "common/base/time.h"

namespace weir::mds {

class LeaseRest {
 public:
  struct Bounds {
    Duration shortest, longest;
  };

  [[nodiscard]] bool On(TimePoint now) const { return now < until_; }
  // Leases were in the way of a change, or would be next.
  void Begin(TimePoint now, const Bounds& bounds) {
    if (!On(now)) {
      const bool again = now - until_ < 4 * length_;
      length_ = again ? std::min(2 * length_, bounds.longest) : bounds.shortest;
    }
    until_ = now + length_;
  }
  void End() { until_ = {}; }

 private:
  TimePoint until_;
  Duration length_{0};
};

}  // namespace weir::mds
