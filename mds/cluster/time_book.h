// TimeBook: what OSDs and mounts said in the last ten seconds about where the time of classes went.
//
// Their sums only grow; kept is what each report added. The first word of a source about a class
// says only where its sums stand, as does one with smaller sums: it was started anew. In memory:
// after our restart it knows nothing for a second.
//
// Threads: any.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/qos/blame.h"

namespace weir::mds {

class TimeBook {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(10);
  // Nothing was heard of it for that long: it is not part of "lately".
  static constexpr Duration kSilence = std::chrono::seconds(3);

  void OsdSaid(OsdId osd, const std::map<ClassId, OsdClassTimes>& sums, TimePoint now);
  void MountSaid(uint64_t session, const std::string& client, KernelPath path,
                 const std::map<ClassId, MountClassTimes>& sums, TimePoint now);
  void MountGone(uint64_t session);

  // All classes of every OSD where this one had I/O, and the mounts that used it.
  [[nodiscard]] Lately Of(ClassId id, TimePoint now) const;

 private:
  template <typename Times>
  class History {
   public:
    void Add(const std::map<ClassId, Times>& sums, TimePoint now);
    [[nodiscard]] bool IsSilent(TimePoint now) const;
    [[nodiscard]] double Seconds() const;
    [[nodiscard]] std::map<ClassId, Times> Lately() const;

   private:
    struct Step {
      TimePoint from;
      TimePoint to;
      std::map<ClassId, Times> grown;
    };
    std::map<ClassId, Times> sums_;
    std::deque<Step> steps_;
    TimePoint heard_;
    bool known_ = false;
  };
  struct Mount {
    std::string client;
    KernelPath path = KernelPath::kUnknown;
    History<MountClassTimes> history;
  };

  mutable std::mutex mutex_;
  std::map<OsdId, History<OsdClassTimes>> osds_;
  std::map<uint64_t, Mount> mounts_;
};

}  // namespace weir::mds
