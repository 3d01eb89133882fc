// SkewBook: how unevenly each class used the OSDs in the last half hour, and the leeway that a
// promise over all of them needs for it (service_contract.h, ChooseLeeway).
//
// Fed with what OSDs say once a second about the times of classes; what a report added is spread
// over the time since the one before, in periods of two seconds. Kept of a period: what the class
// had on its busiest OSD, and on all. In memory: after our restart it knows nothing for a while.
//
// Threads: any.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "common/qos/class_times.h"
#include "common/qos/qos_config.h"

namespace weir::mds {

class SkewBook {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(2);
  static constexpr size_t kPeriodsKept = 900;
  // From fewer nothing is chosen: at 95 % one of twenty may be beyond.
  static constexpr size_t kEnough = 20;

  void OsdSaid(OsdId osd, const std::map<ClassId, OsdClassTimes>& sums, TimePoint now);

  struct Choice {
    double leeway = kLeeway;
    size_t periods = 0;  // that it was chosen by; 0: too few, and it is the default
  };
  // The smallest leeway with which the part that `spec` has on one of `osds` OSDs would have been
  // exceeded in no more periods than its probability leaves, had the class used its promise in
  // each. Periods with less than a tenth of the busiest one's do not count.
  [[nodiscard]] Choice Choose(const ClassSpec& spec, size_t osds, TimePoint now) const;

 private:
  struct Load {
    double bytes = 0;
    double requests = 0;
  };
  struct Period {
    int64_t number = 0;
    Load largest;
    Load sum;
  };
  struct Source {
    std::map<ClassId, OsdClassTimes> sums;
    TimePoint heard;
    bool known = false;
  };
  using OpenPeriod = std::map<ClassId, std::map<OsdId, Load>>;

  static int64_t NumberAt(TimePoint now) { return now.ns / kPeriod.count(); }
  void Spread(OsdId osd, ClassId id, const Load& grown, TimePoint from, TimePoint to);
  void Close(TimePoint now);

  mutable std::mutex mutex_;
  std::map<OsdId, Source> osds_;
  std::map<int64_t, OpenPeriod> open_;  // reports may still add to them
  std::map<ClassId, std::deque<Period>> closed_;
};

}  // namespace weir::mds
