// A whole cluster in one thread and in virtual time, from one seed: mounts, an MDS and three OSDs,
// over a network that loses, doubles, delays and cuts, on disks that forget; machines die and come
// back. What their users saw is checked as they see it; at the end, when all is whole again, so is
// everything that must be there and that must not.
//
// The same seed gives the same run, message for message.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/crash/cluster/planted.h"

namespace weir::crash {

struct ClusterOptions {
  uint64_t seed = 0;
  Bug bug = Bug::kNone;
  // Every operation, fault and message, as it happens; empty: nobody wants to know.
  std::function<void(const std::string&)> trace;
};

struct ClusterOutcome {
  std::string wrong;  // empty: all is well
  uint64_t operations = 0, messages = 0, crashes = 0, cuts = 0;
  uint64_t informed = 0;  // looks that told what is left of names (name_prefix.h)
  uint32_t digest = 0;    // of everything that happened
};

ClusterOutcome RunCluster(const ClusterOptions& options);

}  // namespace weir::crash
