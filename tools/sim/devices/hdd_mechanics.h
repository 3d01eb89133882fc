// HddMechanics: the arm and the platter of one disk; says how long an access takes and remembers
// where that left the head. The queue before it is the device's (hdd.cc).
#pragma once

#include <deque>

#include "tools/sim/devices/hdd.h"

namespace weir::sim {

class HddMechanics {
 public:
  HddMechanics(const HddModel& model, Prng prng);

  // Seconds that this access takes when it comes next. `ahead`: the stream may have been read (or
  // gathered) ahead.
  double Access(uint64_t lba, uint64_t bytes, bool ahead);

 private:
  [[nodiscard]] double Seek(double distance) const;
  // Seconds if the access continues a stream, below 0 if it does not.
  double Continue(uint64_t lba, uint64_t bytes);
  void Remember(uint64_t end);

  HddModel model_;
  double exponent_;
  Prng prng_;
  uint64_t head_ = 0;
  std::deque<uint64_t> streams_;  // where each ended, the latest in front
};

}  // namespace weir::sim
