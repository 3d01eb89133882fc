// What weir-dev knows about its cluster between two commands: DIR/weir-dev.json. What lies in DIR
// is recorded relative to it, so that DIR can be moved; version 1 had absolute paths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "tools/cli/disk_list.h"
#include "tools/cli/process.h"

namespace weir::dev {

struct OsdState {
  std::string disk;       // as disk_spec.h has it, path absolute: DIR/osd.N.img or a disk
  std::string tiers;      // instead: as tier_spec.h has it
  bool is_image = false;  // ours
  std::vector<cli::DiskList::Image> images;  // that are ours to make before it is formatted
  bool formatted = false;
  std::string metrics;  // ADDR:PORT; empty: none
  cli::ProcessId process;
};

struct MountState {
  std::string path;     // absolute
  std::string options;  // behind -o of weirfs
  std::string metrics;  // as of an OSD
  cli::ProcessId process;
};

struct State {
  std::string endpoint;    // of the MDS; kept, so that restarts are found again
  uint64_t osd_size = 0;   // of image files, bytes
  std::string token_rate;  // as typed; empty: profiled at mkfs
  std::string metrics;     // of the MDS, as of an OSD
  std::string web;         // as typed; empty: no page
  cli::ProcessId mds;
  std::vector<OsdState> osds;
  std::vector<MountState> mounts;
};

// kNotFound when DIR holds no cluster; kCorrupt names what is wrong with the file.
Result<State> LoadState(const std::string& dir);
Status SaveState(const std::string& dir, const State& state);

// `osd.0`, `mds.0`, `mnt.1`.
struct DaemonName {
  enum class Kind { kMds, kOsd, kMount } kind = Kind::kMds;
  size_t index = 0;
};
// kInvalid for what is no such name, kNotFound for one that this cluster does not have.
Result<DaemonName> ParseDaemon(const State& state, const std::string& text);
cli::ProcessId& ProcessOf(State& state, const DaemonName& name);

}  // namespace weir::dev
