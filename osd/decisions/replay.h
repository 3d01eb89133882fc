// Replay: what a decision log says was done to a scheduler, done to a fresh one (I-35).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::osd {

struct Replayed {
  // Request numbers, in their order of arrival; 0: none.
  struct Difference {
    uint64_t decision;  // number of the record in the log, from 1
    TimePoint when;
    uint64_t recorded;
    uint64_t chosen;
  };
  std::string profile;                   // the last that was set
  uint64_t decisions = 0;                // records
  uint64_t requests = 0;                 // that arrived
  uint64_t pulled = 0;                   // that a Pull chose
  bool cut_off = false;                  // the last record is not whole: the OSD was killed
  std::optional<Difference> difference;  // the first; nothing after it was looked at
};

// kBadMessage for what is no decision log or contradicts itself; names the record.
Result<Replayed> ReplayDecisions(const std::string& path);

}  // namespace weir::osd
