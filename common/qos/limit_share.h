// LimitShare: which parts of the limits over several OSDs are one mount's: what it obeys, and what
// it tells the divider (limit_divider.h) ten times a second while it uses such a class.
//
// A mount that has been given nothing has nothing, and one that uses the class no more gives up
// what it has. A part lasts for kPartLasts after the request that it answered was sent: until then
// nobody else gets it. Of a mount that hears nothing for longer it is cut down to an equal part:
// when nobody hears anything, all together still have at most the limit, and a mount that alone is
// cut off has no more than that beyond what the others were given.
//
// Pure. Units: parts of the limit, 0 to 1. Threads: not safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace weir {

struct LimitReport {
  ClassId class_id;
  double part = 0;  // that is obeyed now
  // What follows is of the time since the report that was answered last.
  Duration interval{0};
  uint64_t served_bytes = 0;
  uint64_t queued_bytes = 0;  // now
  Duration limited{0};        // in which the part held something back
};

struct LimitPart {
  ClassId class_id;
  double part = 0;
  double equal = 0;  // what each mount that uses the class would have of an equal division
};

inline constexpr Duration kLimitReportInterval = std::chrono::milliseconds(100);
inline constexpr Duration kPartLasts = std::chrono::seconds(3);

// Of a limit in bytes per second.
constexpr uint64_t BytesOf(double part, uint64_t limit) {
  return static_cast<uint64_t>(part * static_cast<double>(limit));
}

class LimitShare {
 public:
  // Sums that only grow, but for what is queued.
  struct Counts {
    uint64_t served_bytes = 0;
    uint64_t queued_bytes = 0;
    Duration limited{0};
  };
  struct Request {
    uint64_t number = 0;
    std::vector<LimitReport> reports;
  };

  // Numbers of requests are above `above`, and so must be those of the same mount's next share.
  explicit LimitShare(uint64_t above) : number_(above) {}

  // What there is to tell of these, which are all that have a limit over several OSDs; what is no
  // more among them, or unused for a second, is given up. None: there is nothing to tell.
  std::optional<Request> Tell(const std::map<ClassId, Counts>& counts, TimePoint now);
  // The answer to the last request; to another one it is ignored. True: a good part was taken away,
  // for which others wait until the next request says that it is obeyed: so ask again soon.
  bool Heard(uint64_t number, const std::vector<LimitPart>& parts, TimePoint now);

  // What is obeyed now.
  [[nodiscard]] double PartOf(ClassId id, TimePoint now) const;

 private:
  struct Class {
    Counts heard;  // what the last report that was answered was about
    TimePoint heard_at;
    Counts told;  // and the last
    TimePoint told_at;
    TimePoint used;  // it had something to do
    double part = 0;
    double equal = 0;
    TimePoint lasts_until;  // of `part`
    [[nodiscard]] double PartAt(TimePoint now) const;
  };

  uint64_t number_;
  bool told_ = false;  // of some class, with the last request
  std::map<ClassId, Class> classes_;
};

}  // namespace weir
