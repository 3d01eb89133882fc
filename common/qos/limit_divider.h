// LimitDivider: divides the limit of a class over several OSDs among mounts by what they ask for.
// The sum of the parts is never more than the limit: a part grows only by what others have
// confirmed to have given up, whatever is lost or late on the way.
//
// Each mount reports what it was served and what its part held back, and is answered with its next
// part (limit_share.h is its half). What it asks for is what it was served lately and a little
// more; once it has used up its part, also what would serve the requests that wait. The limit is
// divided so that whoever asks for less than the others has all of that, and the others have
// equally much (max-min). What nobody asks for is handed out in proportion, so that whoever grows
// is not held back.
//
// A mount that is silent keeps its part until that has run out there. A divider that began anew
// leaves all as it is for as long: by then it has heard of every part that still lasts.
//
// Cost: a request is O(log n) in mounts for each class that it names, on average: how much each may
// have at most when not all can have what they ask for is found anew when a sixteenth of the shares
// have changed, which of ten reports a second is after 6 ms.
//
// Pure. Units: bytes per second; parts of the limit, 0 to 1. Threads: not safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/limit_share.h"

namespace weir {

class LimitDivider {
 public:
  using Mount = uint64_t;  // its session
  // Longer than kPartLasts, as clocks of machines run apart a little.
  static constexpr Duration kForgotten = kPartLasts + std::chrono::milliseconds(100);

  explicit LimitDivider(TimePoint now) : began_(now) {}

  // Of the classes whose limit is divided.
  void SetLimits(std::map<ClassId, uint64_t> limits);

  // Answers the first report of each class. Of a class that is not among them the mount has no
  // part, and of one that it was given a part of no more than that, whatever it says. An older
  // request than the last is answered by nothing, and changes nothing.
  std::vector<LimitPart> Divide(Mount mount, uint64_t number,
                                const std::vector<LimitReport>& reports, TimePoint now);
  // No part lasts that it has not heard of.
  void KnowsAll() { knows_all_ = true; }
  // It obeys nothing any more.
  void Gone(Mount mount);

  // The most that the mounts may obey of a class.
  [[nodiscard]] double Granted(ClassId id) const;
  // So many shares of others were looked at, for all requests.
  [[nodiscard]] uint64_t looked_at() const { return looked_at_; }

 private:
  struct Share {
    double granted = 0;  // the most that it may obey
    struct Lowered {
      double to = 0;
      TimePoint at;
    };
    std::optional<Lowered> lowered;  // by the last answer, and since when about that
    double reported = 0;             // what it obeyed when it reported last
    TimePoint began;
    // Parts of the limit.
    double served = 0;  // lately
    double obeyed = 0;  // lately
    double asks = 0;
  };
  struct Class {
    std::unordered_map<Mount, Share> shares;
    // Sums over the shares.
    double granted = 0;
    double asks = 0;
    double level = 1;    // that nobody has more than, when more is asked for than there is
    size_t changes = 0;  // in the shares since `level` was found
  };
  struct Last {
    uint64_t number = 0;
    TimePoint heard;
    std::list<Mount>::iterator place;  // in by_time_
    std::set<ClassId> classes;         // in which it has a share
  };
  static void Note(Share* share, uint64_t limit, const LimitReport& report, TimePoint now);
  [[nodiscard]] static double TargetOf(const Class& of, const Share& share);
  Last& Hear(Mount mount);
  void ForgetSilent(TimePoint now);
  void Leave(ClassId id, Mount mount);
  // Of one who reports; what it may obey next is part of what `of` has granted from now on.
  LimitPart Answer(Class& of, Mount mount, LimitReport report, TimePoint now);
  void Changed(Class& of);

  TimePoint began_;
  bool knows_all_ = false;
  std::unordered_map<Mount, Last> last_;  // requests
  std::list<Mount> by_time_;              // whoever was heard last is last
  std::map<ClassId, uint64_t> limits_;
  std::map<ClassId, Class> classes_;
  std::vector<double> asked_;  // scratch
  uint64_t looked_at_ = 0;
};

}  // namespace weir
