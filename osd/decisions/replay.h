// Replay: what was done to a scheduler, done to a fresh one (I-35): call by call, where every
// decision must come out as it did (ReplayDecisions, ReplayEvents); or only what any scheduler
// would have been told, which may then decide otherwise (ReplayInputs).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "osd/decisions/event.h"

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

// The log of an OSD, or a recording (recording.h). kBadMessage for what is neither or contradicts
// itself; names the record. The recorder, if there is one, hears what is done.
Result<Replayed> ReplayDecisions(const std::string& path,
                                 qos::DecisionRecorder* recorder = nullptr);
Result<Replayed> ReplayEvents(const std::vector<Event>& events,
                              qos::DecisionRecorder* recorder = nullptr);

// Of events that LoadRecording gave, or an EventKeeper. Tells a fresh scheduler of the same
// arrivals, classes and configurations at the same times, and gives each request that it starts the
// time on the device that the recorded one had: the mean of all where that is not known. Returns
// what came of it, as far as the recording goes. Requests do not wait for answers here that came
// otherwise: a closed loop that was served sooner asks no sooner.
enum class InputOrder : uint8_t {
  kRecorded,  // what has the same time here as in the recording keeps its order
  kOwn,       // at each moment first the device, then arrivals, then the scheduler is asked
};
std::vector<Event> ReplayInputs(const std::vector<Event>& events,
                                InputOrder order = InputOrder::kRecorded);

}  // namespace weir::osd
