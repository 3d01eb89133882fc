// What weir-osd does once its command line is understood: format a disk, or serve it until told to
// stop. Errors are Statuses for main to print; nothing is printed here but the log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/disk/tier_spec.h"

namespace weir::osd {

struct DaemonOptions {
  std::string disk;
  std::vector<TierSpec> tiers;        // instead of `disk`
  std::string mds;                    // canonical endpoint
  std::string listen;                 // canonical endpoint
  uint64_t memory_bytes = 512 << 20;  // half for the store's caches, half for requests under way
  bool meter_background = true;       // OsdServer::Options
  bool metering = true;               // OsdServer::Options
  bool metering_switch = false;       // SIGUSR1 and SIGUSR2 are OsdServer::SetMetering(false, true)
  std::string decision_log;           // a file that does not exist yet; empty: none is kept
  std::string pid_file;               // written at the start, removed at a clean end; empty: none
  std::string metrics;                // canonical HTTP address; empty: none are served
  std::string ready_file;  // holds the bound endpoint while the OSD is registered; empty: none
  std::function<void()> on_hangup;  // upon SIGHUP, in the thread of Serve; null: that ends it
};

struct MkfsDaemonOptions {
  std::string disk;
  std::vector<TierSpec> tiers;  // instead of `disk`
  std::string mds;
  bool force = false;
  uint64_t token_rate = 0;  // 0: measure
  uint64_t size = 0;        // > 0: make image files of that size, which must not exist yet
};

// Blocks the signals that Serve waits for, in the calling thread and all that start later: call it
// first, before any thread exists, so that the signals reach Serve only.
void BlockSignals();

// Serves until SIGTERM, SIGINT, or SIGHUP without on_hangup (ok), or until the MDS refuses this
// OSD. Requires: BlockSignals.
Status Serve(const DaemonOptions& options);
Status Mkfs(const MkfsDaemonOptions& options);

}  // namespace weir::osd
