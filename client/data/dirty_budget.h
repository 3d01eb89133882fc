// DirtyBudget: how much written data each class may leave waiting in this mount.
//
// A quarter of the memory at most, and not more than what its disks took from it in kSeconds
// lately: so a class that is held to 1 MiB/s has some MiB waiting and not sixteen, its fsync ends
// in seconds, and many such classes do not fill the memory of their neighbours. Nothing is known at
// the start: a class begins with `start`, and never gets less than `least`, from which its rate
// shows.
//
// Pure. Threads: not safe; under the lock of its owner.
#pragma once

#include <cstdint>
#include <map>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace weir::client {

class DirtyBudget {
 public:
  static constexpr uint64_t kClassShare = 4;  // no class may have more than this part of the memory
  static constexpr double kSeconds = 4;
  static constexpr Duration kWindow = std::chrono::milliseconds(500);

  explicit DirtyBudget(uint64_t bytes_max);

  [[nodiscard]] uint64_t LimitOf(ClassId class_id) const;
  [[nodiscard]] uint64_t HeldBy(ClassId class_id) const;
  [[nodiscard]] uint64_t held() const { return held_; }
  // What every class may hold, whatever the others do.
  [[nodiscard]] uint64_t least() const { return least_; }

  void Took(ClassId class_id, uint64_t bytes, TimePoint now);
  // They are on the disks, or lost.
  void Landed(ClassId class_id, uint64_t bytes, TimePoint now);

 private:
  struct Class {
    uint64_t held = 0;
    uint64_t limit = 0;
    uint64_t landed = 0;  // since `since`
    TimePoint since;      // of the window that is being measured
  };
  const uint64_t most_;
  const uint64_t start_;
  const uint64_t least_;
  uint64_t held_ = 0;
  std::map<ClassId, Class> classes_;  // some stay after their data went: they remember the rate
};

}  // namespace weir::client
