// What people type to mount, understood but not yet acted on; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/fuse/mount.h"
#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::weirfs {

// Everything behind -o.
struct MountOptions {
  std::string data;  // as --data, for fstab
  std::string mount_class;
  std::string client_name;  // of this mount, for rules; empty: host name and process id
  bool remount = false;     // only flags of the mount that is there change
  bool read_only = false;
  bool allow_other = false;
  Duration commit =
      std::chrono::seconds(1);  // changes of names are on the medium so soon; 0: at once
  bool sync_close = false;      // a close waits for the disks
  bool supervise = false;       // another process goes on with the mount when this one dies
  bool noatime = false, nodiratime = false, strictatime = false;  // neither: relatime
  client::Mount::Uring uring = client::Mount::Uring::kAuto;
  uint32_t reactors = 2;                  // threads for requests
  std::optional<bool> keep_awake;         // processors; none: on where there are few
  std::optional<bool> writeback_cache;    // of the kernel; none: on where no second mount can exist
  std::optional<Duration> timeout;        // none: I/O waits for lost peers as long as it takes
  std::vector<std::string> kernel_flags;  // nosuid and the like, for the mount itself
};
// Adds a comma-separated list; a comma within a value stands behind a backslash, or the value in
// double quotes, as mount(8) has it. Options that mount(8) and fstab give every filesystem are
// accepted; kInvalid names one that nobody knows.
Status AddMountOptions(const std::string& list, bool is_root, MountOptions* options);

// The words of such a list, without backslashes and quotes.
Result<std::vector<std::string>> SplitMountOptions(const std::string& list);

template <typename Words>
bool HasWord(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace weir::weirfs
