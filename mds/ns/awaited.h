// Awaited: since when somebody has been waiting for something, as long as it is asked for again in
// each round, in which all that wait ask: who does not has gone, or wants it no more.
//
// Rounds count from 1. Pure. Threads: under the lock of its owner.
#pragma once

#include <cstdint>

#include "common/base/time.h"

namespace weir::mds {

class Awaited {
 public:
  void Ask(TimePoint now, uint64_t round) {
    const bool goes_on = asked_in_ != 0 && asked_in_ + 1 >= round;
    if (!goes_on) since_ = now;
    asked_in_ = round;
  }
  void End() { asked_in_ = 0; }
  [[nodiscard]] bool ForLongerThan(Duration patience, TimePoint now, uint64_t round) const {
    return asked_in_ == round && now - since_ > patience;
  }

 private:
  TimePoint since_;
  uint64_t asked_in_ = 0;  // the last round; 0: none
};

}  // namespace weir::mds
