// Blame: where the time of a class went lately, and who is the reason that it was not faster: its
// own limit, a neighbour, the disk, the processors, the network, or the application, which asks for
// little.
//
// Waiting for one's turn is shared out by what was released meanwhile: the class's own requests
// (then the disk is the reason) or those of others. Time in the mount's window follows from all
// the rest, so it is shown but never the reason by itself; what the mount holds back for the limit
// of the class counts like what OSDs hold back for it.
//
// Pure. Units: seconds.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/posix/kernel_path.h"
#include "common/qos/class_times.h"

namespace weir {

// What the last `seconds` brought to every class at one OSD.
struct OsdLately {
  OsdId osd;
  double seconds = 0;
  std::map<ClassId, OsdClassTimes> classes;
};
// And what one mount saw of the class.
struct MountLately {
  std::string client;
  double seconds = 0;
  MountClassTimes times;
  KernelPath path = KernelPath::kUnknown;
};
struct Lately {
  std::vector<OsdLately> osds;
  std::vector<MountLately> mounts;
};

// Seconds of requests, per second: how many requests were in that state on average.
struct TimeSplit {
  double client_window = 0;
  double network = 0;
  double class_queue = 0;  // waiting for its turn
  double token_wait = 0;   // for its own limit, here or at the mount, or a rate of the OSD
  double device = 0;       // on it, or owed service and waiting for room

  [[nodiscard]] double total() const {
    return client_window + network + class_queue + token_wait + device;
  }
};

enum class Culprit : uint8_t {
  kNobody,
  kLimit,
  kNeighbour,
  kDisk,
  kNetwork,
  kApplication,
  kProcessors
};
std::string_view ToText(Culprit culprit);  // "limit", "neighbour" ...

struct Verdict {
  TimeSplit split;
  Culprit culprit = Culprit::kNobody;  // nobody: it asked for nothing
  ClassId neighbour;                   // of kNeighbour: who got most of what it waited for
  OsdId osd;                           // where most of its time at OSDs went
  double active_part = 0;              // of the time: it had a request under way, 0 to 1
  double limited_part = 0;             // of the time: its limit held something back, 0 to 1
  double seconds = 0;                  // that is how long the look was
  double ops_per_s = 0;
  double bytes_per_s = 0;
};

Verdict Judge(const Lately& lately, ClassId id);

// For people: "its own limit", "neighbour 'hog'", "the disk (osd.1)" ...
std::string WhoIsToBlame(const Verdict& verdict, std::string_view neighbour_name);

}  // namespace weir
