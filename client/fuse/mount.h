// Mount: one mounted WeirFS. Give it a network and an MDS and it serves a directory through FUSE.
//
// Lifecycle: Start returns when the mount is usable; Wait blocks until somebody unmounts it
// (umount, fusermount3 -u) or Stop is called; the destructor stops. When the kernel has let go,
// buffered data is flushed (bounded by Options::unmount_timeout), the session is given back, and
// threads end. Threads:   Start, Wait and the destructor from one thread; Stop from any, also a
// signal thread. Ownership: network and clock outlive the mount. Fork before Start, never after.
// Errors:    Start: kUnreachable / kTimedOut when the MDS does not answer, kNotFound when the
//            subtree or class does not exist, else what mount(2) said.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir {
class Reactor;
}
namespace weir::net {
class Network;
}

namespace weir::client {

class Mount {
 public:
  enum class Uring : uint8_t { kAuto, kOn, kOff };
  struct Options {
    std::string mount_class;        // class of untagged files; empty: best-effort
    std::string subtree;            // directory of the file system to mount; empty: its root
    std::string client_name;        // as the MDS shows it; empty: host name and process id
    std::string fsname = "weirfs";  // what the mount table shows as its source, any text
    bool read_only = false;
    bool allow_other = false;
    // Which reads move access times; none of these: as Linux does it, by relatime.
    bool noatime = false, nodiratime = false, strictatime = false;
    // Lazily takes away what is mounted there, once everything else is ready: what is open below it
    // stays with whoever serves it.
    bool replace = false;
    // No second mount can exist: the kernel may cache everything and write back on its own.
    bool exclusive = false;
    // The kernel's write-back cache. It knows no classes: see client/README.md.
    bool writeback_cache = false;
    // What is done to names is on the medium so soon, or when somebody waits for it; 0: at once.
    Duration commit = std::chrono::seconds(1);
    // A close waits until what was written is stored (client/data/file_io.h).
    bool sync_close = false;
    // Processors do not sleep while few requests are under way, where this process may see to that
    // (common/base/awake_processors.h).
    bool keep_awake = false;
    // By what way the kernel's requests come. kAuto: io_uring where the kernel offers it and memory
    // allows, and no other process may have to go on with the mount; else /dev/fuse. kOn: kInvalid
    // or kNotSupported says why not.
    Uring uring = Uring::kAuto;
    // Threads that take the kernel's requests and run their handlers, 1 to 4.
    uint32_t reactors = 2;
    // The OSD's of this process, which serves the kernel, too, as one of them; outlives the mount.
    Reactor* first_reactor = nullptr;
    // Operations fail this long after their peer became unreachable; max: they wait.
    Duration timeout = Duration::max();
    Duration connect_timeout = std::chrono::seconds(10);
    Duration unmount_timeout = std::chrono::seconds(60);
    // Told once, when the MDS has answered and the mount itself is next. May be empty.
    std::function<void()> before_mount;
    uint64_t dirty_bytes_max = 64 << 20;
    uint64_t readahead_bytes = 4 << 20;
    std::vector<std::string> fuse_options;  // further ones for libfuse and the kernel, e.g. nosuid
    // For another process to go on with the mount when this one dies: a RecordFile with what that
    // one must know. -1: none will. Needs Linux 6.9.
    int state_fd = -1;
    // The kernel's end as a predecessor had it: goes on with that mount. Then the mount's.
    int device_fd = -1;
    // Told once when another process could go on: by this descriptor, which stays the mount's, and
    // the mount's device number. On one of the mount's threads.
    std::function<void(int device_fd, const std::string& device)> on_device;
  };

  // What it does now and did since its start.
  struct Counters {
    struct Class {
      std::string name;  // "removed": all that are gone
      uint64_t answered_bytes = 0, answered_requests = 0;
      uint64_t flying_bytes = 0, flying_requests = 0, waiting_requests = 0;
    };
    std::vector<Class> classes;
    uint64_t sent = 0, retried = 0, checksum_errors = 0, expired = 0;  // object requests
    uint64_t dirty_bytes = 0;
    uint64_t inodes = 0;           // that the kernel or we hold
    uint64_t kernel_requests = 0;  // not answered yet
    bool over_uring = false;       // they come by io_uring, else by /dev/fuse
    uint64_t ring_requests = 0;    // that came so
    uint64_t ring_entries = 0;
    uint64_t ring_bytes = 0;  // of memory that these have in use
    uint64_t map_epoch = 0;
    bool mds_connected = false;
  };

  static Result<std::unique_ptr<Mount>> Start(net::Network& network, Clock& clock,
                                              const std::string& mds_endpoint,
                                              const std::string& mountpoint, Options options);
  ~Mount();

  // Ok when it ended by an unmount.
  Status Wait();
  // Takes no more requests from the kernel and stores what is buffered: then the process may end,
  // and its successor go on, with nothing lost. An error: not in that time, and it goes on here.
  Status HandOver(Duration wait);
  // Unmounts, lazily when files are open. Wait returns afterwards.
  void Stop();
  // From any thread. All zero once it has ended.
  [[nodiscard]] Counters counters() const;

 private:
  class Impl;
  explicit Mount(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::client
