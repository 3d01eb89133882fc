// ClusterHistory: what each class was promised, asked for and got over the last minutes, from looks
// at the counters of all OSDs, and the document that the web page draws.
//
// An OSD that is missing in a look, or was reset before it, adds nothing to the rates of that look.
// Pure. Threads: not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/monitor/latency_counts.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"

namespace weir::monitor {

// What somebody saw who asked the MDS and every OSD that is up.
struct Look {
  TimePoint at;
  WallTime wall;
  wire::StatusReply status;
  std::map<uint32_t, wire::OsdStatsReply> osds;  // of those that answered
  std::map<uint32_t, std::string> silence;       // of the others that are up: why not
  wire::ClassLoadReply names;                    // operations on names, with flows
  std::string names_missing;                     // why the MDS did not tell; empty: it did
};

class ClusterHistory {
 public:
  static constexpr size_t kSamples = 300;

  explicit ClusterHistory(WallTime started) : started_(started) {}

  void Add(Look look);
  // The MDS did not answer: the document says so until the next look.
  void AddSilence(const std::string& why) { silence_ = why; }

  // One JSON document: the cluster now, and the samples after number `since`, or all there are when
  // that is none of ours. Its keys are described in README.md.
  [[nodiscard]] std::string Document(uint64_t since) const;

 private:
  struct ClassSample {
    uint32_t id = 0;
    double demand = 0;  // bytes per second
    double served = 0;
    double ops = 0;  // per second
    uint64_t queued = 0;
    uint64_t p50_us = 0;  // of what was served since the look before; 0: nothing
    uint64_t p99_us = 0;
  };
  struct Sample {
    uint64_t number = 0;
    WallTime wall;
    double seconds = 0;
    std::vector<ClassSample> classes;  // not those that rest
  };
  static std::vector<ClassSample> Between(const Look& before, const Look& now, double seconds);

  const WallTime started_;
  std::optional<Look> last_;
  std::string silence_;
  uint64_t taken_ = 0;
  std::deque<Sample> samples_;
};

}  // namespace weir::monitor
