// Served: the bytes that each class was served, in steps of 100 ms; by which two runs of the same
// inputs are compared where their order need not be the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "osd/decisions/event.h"

namespace weir::osd {

struct Served {
  static constexpr Duration kStep = std::chrono::milliseconds(100);
  struct OfClass {
    std::vector<uint64_t> until;  // [i]: completed in the first i + 1 steps
    uint64_t largest = 0;         // request that arrived
  };
  // By the class that requests arrived for.
  std::map<ClassId, OfClass> classes;
};

// All classes have as many steps as the events last; the last one may be cut off.
// Requires: events that LoadRecording gave, or an EventKeeper.
Served ServedOf(const std::vector<Event>& events);

// Where the running totals of a class are furthest apart, as long as both last.
struct ServedGap {
  ClassId id;
  Duration at{0};  // from the start
  uint64_t recorded = 0;
  uint64_t replayed = 0;
  double part = 0;  // of all that the class was served in the recording
};
// As many as wait in a window and on a device.
inline constexpr uint64_t kRequestsFree = 8;
// A difference of up to `requests_free` of the class's largest requests counts as none: requests
// are whole, and some are on the device.
ServedGap LargestGap(const Served& recorded, const Served& replayed, uint64_t requests_free);

}  // namespace weir::osd
