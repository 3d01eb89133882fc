// FileReleases: lets the MDS know which files this mount holds open no more, and which it keeps no
// more that have lost their last name.
//
// With an open file goes what this mount was allowed of it: how far it may grow, the right to
// append and the lease, whose writes end first; attributes that are held are told before the
// release, for later nobody would ask for them here.
//
// Threads: any; callbacks with no lock held, on RPC threads or before the call returns. Errors:
// none; a release that failed is made good by the next session (MdsClient's `open_inodes`).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "client/vfs/append_rights.h"
#include "client/vfs/file_leases.h"
#include "client/vfs/inode_table.h"

namespace weir::wire {
class ReleaseRequest;
}

namespace weir::client {

class TakeoverLog;

class FileReleases {
 public:
  struct Actions {
    // The MDS hears of attributes that are held of the file; then `told`.
    std::function<void(const InodePtr&, std::function<void()> told)> tell_held;
    // MDS_RELEASE; `ended` when it was answered, or failed.
    std::function<void(const wire::ReleaseRequest&, std::function<void()> ended)> send;
  };
  // All outlive it. `takeover` may be null.
  FileReleases(InodeTable& inodes, FileLeases& leases, AppendRights& appends, TakeoverLog* takeover,
               Actions actions)
      : inodes_(inodes),
        leases_(leases),
        appends_(appends),
        takeover_(takeover),
        actions_(std::move(actions)) {}

  // Nobody has these open any more; `done` when the MDS has heard of it, or cannot.
  void Release(const std::vector<InodeId>& inodes, std::function<void()> done);
  // The kernel knows these no more, which have no name; `blank` of them: see KeptInodes.
  void ReleaseKept(const std::vector<InodeId>& inodes, const std::vector<InodeId>& blank);
  // What the MDS allowed them to grow holds no more.
  void ForgetAllowed(const std::vector<InodeId>& inodes);
  // On their way to the MDS.
  [[nodiscard]] uint64_t under_way() const { return under_way_; }

 private:
  void Tell(const std::vector<InodeId>& inodes, std::function<void()> done);

  InodeTable& inodes_;
  FileLeases& leases_;
  AppendRights& appends_;
  TakeoverLog* const takeover_;
  const Actions actions_;
  std::atomic<uint64_t> under_way_{0};
};

}  // namespace weir::client
