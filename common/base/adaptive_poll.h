// AdaptivePoll: whether a thread that has nothing to do looks for a while before it sleeps.
//
// A sleep costs the one who ends it a wake-up, and the sleeper the time until its processor is back
// (20 to 50 us where processors are virtual). Looking costs processor time. So a thread looks only
// while its waits are short, and not while somebody else wants the processor: a thread that lost it
// while it looked sleeps for the next kRestWaits waits. One that runs ahead of turns
// (short_turns.h) would not lose it, so the reactor does not let it look: three OSDs at 40 MiB/s of
// writers, a reader's p99 3.0 to 3.5 times alone, now 2.0 to 2.8, two runs of each.
//
// Waits come in rounds (a request, its disk, the next request), some of which are long in each
// round: so the share of short ones is kept for each history of four waits.
//
// Measured, two virtual processors, medians of 3 to 4 runs in turns, without and with: embedded
// mount, 4 KiB reads by one job 60 -> 55 us (p50), by 16 jobs 43,400 -> 44,700/s, durable writes by
// 16 jobs 14,800 -> 15,500/s; a cluster of 5 busy processes, reads 34,200 -> 33,600/s, durable
// writes 10,700 -> 11,200/s. Without the rest that cluster lost 12 %.
//
// Pure. Threads: one.
#pragma once

#include <array>
#include <chrono>

#include "common/base/time.h"

namespace weir {

class AdaptivePoll {
 public:
  // About what a sleep and a wake-up take.
  static constexpr Duration kLookFor = std::chrono::microseconds(50);
  static constexpr int kRestWaits = 256;

  // How long to look before the next sleep; 0: not at all.
  [[nodiscard]] Duration Budget() const {
    return resting_ == 0 && short_share_[history_] >= kEnough ? kLookFor : Duration(0);
  }
  // The thread has looked for `looked`, and had its processor for `ran` of that.
  void Looked(Duration looked, Duration ran) {
    if (looked - ran > kLost) resting_ = kRestWaits;
  }
  // A wait has ended, after so long, the looking included.
  void Waited(Duration wait) {
    if (resting_ > 0) --resting_;
    const bool is_short = wait <= kLookFor;
    int& share = short_share_[history_];
    share += ((is_short ? kWhole : 0) - share) / kWindow;
    history_ = (history_ << 1 | (is_short ? 1U : 0U)) % kHistories;
  }

 private:
  static constexpr Duration kLost = std::chrono::microseconds(10);  // longer than an interrupt
  static constexpr int kWhole = 1 << 12;
  static constexpr int kEnough = kWhole / 2;
  static constexpr int kWindow = 8;            // waits
  static constexpr unsigned kHistories = 16;   // of four waits
  std::array<int, kHistories> short_share_{};  // exponentially averaged, behind each history
  unsigned history_ = 0;                       // a bit for each of the last waits: short
  int resting_ = 0;                            // waits until it may look again
};

}  // namespace weir
