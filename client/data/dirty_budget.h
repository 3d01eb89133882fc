// DirtyBudget: how much written data each class may leave waiting in this mount.
//
// A quarter of the memory at most, and not more than what its disks took from it in kSeconds
// lately: so a class that is held to 1 MiB/s has some MiB waiting and not sixteen, its fsync ends
// in seconds, and many such classes do not fill the memory of their neighbours. Nothing is known at
// the start: a class begins with `start`, and never gets less than `least`, from which its rate
// shows. A class whose limit is known has no more waiting than the limit lets go in kLimitSeconds:
// so long a close, or the end of the mount, waits for it at most.
//
// Pure. Threads: not safe; under the lock of its owner.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace weir::client {

class DirtyBudget {
 public:
  static constexpr uint64_t kClassShare = 4;  // no class may have more than this part of the memory
  static constexpr double kSeconds = 4;
  static constexpr uint64_t kLimitSeconds = 2;
  static constexpr Duration kWindow = std::chrono::milliseconds(500);

  explicit DirtyBudget(uint64_t bytes_max);

  [[nodiscard]] uint64_t LimitOf(ClassId class_id) const;
  [[nodiscard]] uint64_t HeldBy(ClassId class_id) const;
  [[nodiscard]] uint64_t held() const { return held_; }
  // What it may hold whatever the others do.
  [[nodiscard]] uint64_t LeastOf(ClassId class_id) const;

  void Took(ClassId class_id, uint64_t bytes, TimePoint now);
  // Bytes per second of the classes that have a limit, from now on.
  void SetLimits(std::map<ClassId, uint64_t> bytes_per_s) { limits_ = std::move(bytes_per_s); }
  // They will never be stored.
  void Dropped(ClassId class_id, uint64_t bytes);
  // They are on the disks, or lost.
  void Landed(ClassId class_id, uint64_t bytes, TimePoint now);

 private:
  struct Class {
    uint64_t held = 0;
    uint64_t limit = 0;
    uint64_t landed = 0;  // since `since`
    TimePoint since;      // of the window that is being measured
  };
  [[nodiscard]] uint64_t CeilingOf(ClassId class_id) const;

  const uint64_t most_;
  const uint64_t start_;
  const uint64_t least_;
  uint64_t held_ = 0;
  std::map<ClassId, uint64_t> limits_;
  std::map<ClassId, Class> classes_;  // some stay after their data went: they remember the rate
};

}  // namespace weir::client
