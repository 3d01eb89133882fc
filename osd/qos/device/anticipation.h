// Anticipation: keeps a disk with a head idle for the reader who is about to ask again.
//
// With anticipation the device is kept for the class whose read has just been done: for `kPatience`
// if it does not ask, and as long as it goes on asking, but at most for a turn; then everybody goes
// for a pause before the next turn. What others lose is the trade: up to turn / (turn + pause) of
// the device's time. What they are owed (guarantee) goes all the same.
//
// A reader whose data lies on several disks reads from the others meanwhile, as his requests say
// (DSFQ's delay). He is waited for as long as he is used to be away, five times the mean, which all
// but two in a hundred of his returns are within if he picks one of three at random.
//
// What others have there when a turn begins, on the disk or in its write cache until the flush of
// its commit is done, goes on moving the head for longer than the pause lasted. The turn counts
// from the moment when that is over, `kClearing` later at most.
//
// Source: the deceptive idleness of Iyer and Druschel (SOSP'01); the turns are ours.
// Threads: the scheduler's owner. Pure.
#pragma once

#include "common/base/ids.h"
#include "common/base/time.h"

namespace weir::osd::qos {

class Anticipation {
 public:
  static constexpr Duration kPatience = std::chrono::milliseconds(5);
  static constexpr Duration kPatienceMax = std::chrono::milliseconds(100);
  static constexpr Duration kTurn = std::chrono::milliseconds(1500);
  static constexpr Duration kPause = std::chrono::milliseconds(250);
  static constexpr Duration kClearing = std::chrono::seconds(2);

  // Off ends a turn at once.
  void Switch(bool on);
  [[nodiscard]] bool on() const { return on_; }

  // A small read of a class that waits for each answer has been done, while requests of others
  // were started and not done, or none.
  void Completed(ClassId id, bool others_work, TimePoint now);
  // A request of that class, which it made then, goes to the device. `was_elsewhere`: other disks
  // served the class since this one did.
  void Submitted(ClassId id, TimePoint made, bool was_elsewhere);

  // Whether the device is kept for the holder now, so that nobody else's surplus may go.
  [[nodiscard]] bool Keeps(TimePoint now) const { return on_ && now < kept_until_; }
  // When to look again, if it is kept and nothing happens.
  [[nodiscard]] TimePoint kept_until() const { return kept_until_; }

 private:
  bool on_ = false;
  ClassId holder_;
  TimePoint left_at_;      // when the holder's last read was done
  Duration mean_away_{0};  // until it asked again, if it was elsewhere, else 0
  TimePoint kept_until_;
  TimePoint turn_ends_ = TimePoint() - kPause;
  TimePoint cleared_by_;  // of the turn
};

}  // namespace weir::osd::qos
