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
};

}  // namespace weir::model
