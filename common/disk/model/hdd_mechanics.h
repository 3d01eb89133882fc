// HddMechanics: the arm and the platter of one disk; says how long an access takes and remembers
// where that left the head. The queue before it is the device's (hdd.cc).
#pragma once

#include <deque>

#include "common/disk/model/hdd.h"

namespace weir::model {

class HddMechanics {
 public:
  HddMechanics(const HddModel& model, Prng prng);

  // Seconds that this access takes when it comes next. `ahead`: the stream may have been read (or
  // gathered) ahead.
  double Access(uint64_t lba, uint64_t bytes, bool ahead);
  // Seconds before its first byte, rotation not counted: what a disk that orders its queue can
  // compare.
  [[nodiscard]] double Positioning(uint64_t lba, bool ahead) const;

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

}  // namespace weir::model
