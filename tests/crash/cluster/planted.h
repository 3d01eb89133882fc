// Bugs on purpose, which the simulation must notice to be worth anything: each is a server or a
// network that does one thing wrong.
#pragma once

#include "common/testing/sim_transport.h"
#include "tests/crash/cluster/sim_disk.h"

namespace weir::crash {

enum class Bug {
  kNone,
  kForgottenRetries,  // a request that comes again is carried out again
  kMdsAnswersEarly,   // the MDS answers before its commit is durable
  kTornCommit,        // a power loss takes the first of the names that are committed together
  kLostReplay,        // what a mount repeats to a new MDS is answered and not done
  kRefusedReplay,     // it is refused
  kDeafMds,           // the MDS does not hear a mount any more that is not cut off
  kOsdAnswersEarly,   // an OSD does
  kWrongOrder,        // an OSD's metadata is durable before the data that it names
  kLeak,              // the MDS forgets what it has to purge when it restarts
  kLostPurge,         // an OSD says that it has deleted, and has not
  kLostRecall,        // a mount is not told which leases it has to give back
  kLostLook,          // nor which of those on what it has looked at
};

SimKv::Bug KvBugOfMds(Bug bug);
SimKv::Bug TearingOfMds(Bug bug);
SimKv::Bug KvBugOfOsd(Bug bug);
// What the bug does to a message; may be called for every one.
void Spoil(Bug bug, const testing::SimNetwork::Passing& passing, net::Message* message);
// Whether it keeps the message from whom it is for, once the bug has set in.
bool Swallows(Bug bug, const testing::SimNetwork::Passing& passing);

}  // namespace weir::crash
