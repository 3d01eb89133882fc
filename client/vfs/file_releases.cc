#include "client/vfs/file_releases.h"

#include "client/takeover/takeover_log.h"
#include "common/base/after_all.h"
#include "common/wire/mds.pb.h"

namespace weir::client {

void FileReleases::Release(const std::vector<InodeId>& inodes, std::function<void()> done) {
  ++under_way_;
  ForgetAllowed(inodes);
  appends_.Recall(inodes);
  for (const InodeId id : inodes) leases_.BeginRelease(id);
  const auto told =
      AfterAll(inodes.size(), [this, inodes, done = std::move(done)] { Tell(inodes, done); });
  for (const InodeId id : inodes) {
    leases_.WhenQuiet(id, [this, id, told] {
      const InodePtr inode = inodes_.Find(id);
      if (inode == nullptr) return told();
      actions_.tell_held(inode, told);
    });
  }
}

void FileReleases::Tell(const std::vector<InodeId>& inodes, std::function<void()> done) {
  wire::ReleaseRequest request;
  for (const InodeId inode : inodes) request.add_inodes(inode.value);
  actions_.send(request, [this, inodes, done = std::move(done)] {
    for (const InodeId id : inodes) leases_.EndRelease(id);
    if (takeover_ != nullptr) takeover_->Released(inodes);
    --under_way_;
    done();
  });
}

void FileReleases::ReleaseKept(const std::vector<InodeId>& inodes,
                               const std::vector<InodeId>& blank) {
  wire::ReleaseRequest request;
  for (const InodeId inode : inodes) request.add_kept(inode.value);
  for (const InodeId inode : blank) request.add_blank(inode.value);
  ++under_way_;
  actions_.send(request, [this] { --under_way_; });
}

void FileReleases::ForgetAllowed(const std::vector<InodeId>& inodes) {
  for (const InodeId id : inodes) {
    if (const InodePtr inode = inodes_.Find(id)) inode->ForgetAllowed();
  }
}

}  // namespace weir::client
