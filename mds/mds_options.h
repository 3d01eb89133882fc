// What an owner of a metadata server may choose.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "common/base/result.h"
#include "common/base/time.h"
#include "mds/ns/file_leases.h"

namespace weir::mds {

struct NamespaceOptions {
  size_t cached_keys = 400'000;
  bool commit_thread = true;  // false: the owner calls CommitPrepared
  uint64_t life = 0;          // of wire::Ordered; 0: random
  // Without a commit thread: there is something to commit. Called under a lock.
  std::function<void()> on_prepared{};
  // That read what operations find missing from memory. 0: whoever began the operation does, when
  // he has let go of the lock.
  size_t loader_threads = 2;
  // Without such threads: there is something to load, the owner calls LoadMissing. Called under a
  // lock.
  std::function<void()> on_missing{};
  FileLeases::Options file_leases;
  // Who owns the root of a file system that is made.
  uint32_t maker_uid = 0;
  uint32_t maker_gid = 0;
};

struct MdsOptions {
  std::string new_cluster_uuid;  // of a cluster that is founded; empty: random
  Duration lease = std::chrono::seconds(30);
  Duration grace = std::chrono::seconds(15);  // after a restart, for sessions to reclaim
  Duration obey_patience = std::chrono::seconds(2);
  // After a restart, with mounts that do not come to repeat what they were told
  // (service/replays.h).
  Duration replay_patience = std::chrono::seconds(15);
  NamespaceOptions ns;
  bool background = true;  // false: the owner calls Tick
  // Runs its argument on the calling thread when that has read what has come by now; false: it does
  // not read requests. Null: no thread has turns, and what is asked begins at once.
  std::function<bool(std::function<void()>)> post_here{};
  // Called when the store has been read and found good, before anybody is served.
  std::function<Status()> on_open{};
};

}  // namespace weir::mds
