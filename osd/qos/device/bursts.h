// Bursts: how others get a disk with a head while somebody reads small pieces, one after the other.
//
// Wherever the head was, the next small read costs such a disk as much as a megabyte. If others go
// one by one between the reads, each read pays for the way back and they get next to nothing. So
// they go in bursts of `kBytes`. When all of a burst is done (a disk's cache and the flush of its
// commit included), the disk is the reader's for `kReads` reads, and then the next burst begins.
// Reads go beside a burst, and pay for it; the others find the head where they left it.
//
// Nobody waits for a reader who has stopped: after `kPatience` without a read others go on, and so
// they do `kPauseMax` after their burst at the latest. What they are owed (guarantee) goes all the
// same. On a disk whose small reads alone take less than `kFarRead` all this is off.
//
// Threads: the scheduler's owner. Pure.
#pragma once

#include <cstdint>

#include "common/base/time.h"

namespace weir::osd::qos {

class Bursts {
 public:
  static constexpr uint64_t kBytes = 6 << 20;
  static constexpr int kReads = 5;
  static constexpr Duration kFarRead = std::chrono::milliseconds(3);
  static constexpr Duration kPatience = std::chrono::milliseconds(5);
  // What has landed waits so long for the rest of its burst before its commit flushes the disk.
  static constexpr Duration kGathers = std::chrono::milliseconds(20);
  static constexpr Duration kPauseMax = std::chrono::milliseconds(250);

  // A small read of a class that waits for each answer goes to the device, and is done.
  void ReadSubmitted(TimePoint now);
  void ReadDone(TimePoint now);
  // Anything else goes to it. True: it is part of a burst, and Done is to be called for it.
  [[nodiscard]] bool Submitted(uint64_t bytes, TimePoint now);
  void Done() {
    if (--under_way_ == 0) reads_ = 0;
  }
  // One of a burst will land, and has: the device has it, perhaps in a cache, and the flush of a
  // commit is what is left.
  void Lands() { ++landing_; }
  void Landed() { --landing_; }

  // How long what has landed may wait for the rest of the burst, if there is more to come.
  [[nodiscard]] Duration Patience(bool more) const {
    return landing_ > 0 || (more && given_ < kBytes) ? kGathers : Duration(0);
  }
  // Somebody reads, so that others go in bursts.
  [[nodiscard]] bool Acts(TimePoint now) const { return now < reader_until_; }
  // Others wait for the next burst.
  [[nodiscard]] bool Keeps(TimePoint now) const { return now < KeptUntil(); }
  // When others go on if nothing happens; a time that has passed: they do not wait.
  [[nodiscard]] TimePoint KeptUntil() const;

 private:
  uint64_t given_ = 0;      // bytes of the burst
  uint64_t under_way_ = 0;  // requests of it
  uint64_t landing_ = 0;    // of those
  uint64_t reading_ = 0;    // reads under way
  int reads_ = 0;           // done since the burst was
  TimePoint reader_until_;
  TimePoint pause_ends_;  // of a burst that is given
};

}  // namespace weir::osd::qos
