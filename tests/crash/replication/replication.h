// Replication from one seed: OSDs, MDSes, etcd and clients in one thread and in virtual time;
// trouble for some seconds, then everything heals and must end well.
//
// The same seed gives the same run, message for message.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/crash/replication/planted.h"

namespace weir::crash::replication {

struct RunOptions {
  uint64_t seed = 0;
  Bug bug = Bug::kNone;
  World::Trace trace;
};

struct RunOutcome {
  std::string wrong;  // empty: all is well
  uint64_t acknowledged = 0, refused = 0, reads = 0, messages = 0;
  uint64_t crashes = 0, chains = 0;  // changes of a chain
  uint64_t digest = 0;               // of every message and its time
};

RunOutcome RunReplication(const RunOptions& options);

}  // namespace weir::crash::replication
