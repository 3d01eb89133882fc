// DiskModel: how long a disk takes, as a function of the requests it saw and of its own seeded
// chance, nothing else. Virtual time: it lives on an EventQueue, and whoever runs that decides what
// a second is: weir-sim runs it as fast as it can, an emulated disk (emulated_device.h) in step
// with the clock.
//
// Units: bytes. Threads: those of the queue, one at a time. Errors: a model has none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/time.h"
#include "common/disk/model/event_queue.h"

namespace weir::model {

struct DiskIo {
  enum class Kind { kRead, kWrite, kFlush };
  Kind kind = Kind::kRead;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class DiskModel {
 public:
  // Runs at the moment of completion; `worked`: how long the disk was busy with it.
  using Done = std::function<void(Duration worked)>;

  DiskModel() = default;
  virtual ~DiskModel() = default;
  DiskModel(const DiskModel&) = delete;
  DiskModel& operator=(const DiskModel&) = delete;

  // Now, on the queue's clock.
  virtual void Submit(const DiskIo& io, Done done) = 0;

  // When somebody who runs the queue in step with a clock must run it next.
  struct Alarm {
    TimePoint answer;    // to the moment: Done of somebody
    TimePoint progress;  // soon after does: answers depend on it, but come later still
  };
  // What is in the queue and neither may wait for the next alarm or Submit.
  virtual Alarm NextAlarm(const EventQueue& events) { return {events.next(), TimePoint::Max()}; }
};

}  // namespace weir::model
