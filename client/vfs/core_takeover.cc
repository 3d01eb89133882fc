// Core: going on where a predecessor of this process has died, and leaving things to a successor.
#include <fcntl.h>

#include <future>
#include <unordered_set>

#include "client/takeover/takeover_log.h"
#include "client/vfs/core.h"
#include "common/base/after_all.h"
#include "common/base/log.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

// The kernel has asked again long before for what a predecessor did not answer.
constexpr Duration kLeftIdsKept = std::chrono::seconds(30);

}  // namespace

void Core::Resume() {
  const MountState& left = options_.takeover->left();
  fenced_ = session_fence_ = Epoch(left.fenced);
  eviction_waits_.Heard(left.fenced);
  handles_.SetLast(left.last_handle);
  for (const auto& [number, file] : left.handles) ResumeFile(file);
  std::unordered_set<uint64_t> open;
  for (const auto& [number, file] : left.handles) open.insert(file.inode.value);
  // Opened and closed once more: that lets the MDS know.
  for (const uint64_t id : left.unreleased) {
    const InodeId inode(id);
    if (open.contains(id)) continue;
    open_files_.Open(inode, [] {});
    open_files_.Close(inode);
  }
  locks_.Restore(left.HeldLocks());
  free_left_at_ = clock_.Now() + kLeftIdsKept;
}

void Core::ResumeFile(const OpenedFile& file) {
  open_files_.Open(file.inode, [] {});
  // Of a process that has ended, its number tells it from others as well.
  const uint64_t group = callers_.ThreadGroupOf(file.pid);
  auto opener =
      caller_classes_.Restore({.uid = file.uid,
                               .gid = file.gid,
                               .groups = {file.groups.begin(), file.groups.end()},
                               .pid = file.pid,
                               .thread_group = group != 0 ? group : static_cast<uint64_t>(file.pid),
                               .exe = file.exe,
                               .cgroup = file.cgroup,
                               .fenced = file.fenced});
  auto handle = std::make_shared<Handle>(inodes_.Find(file.inode), std::move(opener), file.flags);
  handle->lost = file.lost;
  if (handle->MayWrite()) handle->inode->AddWriter();
  handles_.Restore(file.number, std::move(handle));
}

// The kernel asks for data of a file without asking for its size before.
void Core::RefreshOpenFiles() {
  const std::vector<InodeId> open = open_files_.All();
  const MountState& left = options_.takeover->left();
  WEIR_LOG_INFO("goes on where another process has ended: {} open files, {} under way",
                left.handles.size(), left.changes.size());
  for (const LockAsk& ask : left.HeldLocks()) {
    if (!left.handles.contains(ask.handle)) locks_.Released(ask.inode, ask.handle);
  }
  if (open.empty()) return;
  auto all = std::make_shared<std::promise<void>>();
  const auto answered = AfterAll(open.size(), [all] { all->set_value(); });
  for (const InodeId id : open) {
    wire::InodeRequest request;
    request.set_inode(id.value);
    mds_->Call<wire::EntryReply>(
        wire::MDS_GETATTR, request, true,
        [this, inode = inodes_.Find(id), asked = leases_.Asked(),
         answered](const Result<wire::EntryReply>& reply) {
          if (reply.ok()) {
            if (reply->has_effective_class() && reply->effective_class().tagged()) {
              inode->set_tag_class(ClassId(reply->effective_class().class_id()));
            }
            (void)inodes_.Update(inode, Heard(reply->attr()));
            leases_.Learn(inode, *reply, asked);
          } else {
            WEIR_LOG_WARN("inode {} is open, and the MDS says: {}", inode->id().value,
                          reply.status().message());
          }
          answered();
        },
        Duration::max());
  }
  all->get_future().wait();
}

void Core::FreeLeftIds() {
  free_left_at_ = TimePoint::Max();
  const MountState& left = options_.takeover->left();
  for (const auto& [unique, id] : left.changes) {
    mds_->FreeId(id);
    options_.takeover->ChangeEnds(unique);
  }
  for (const auto& [unique, offset] : left.appends) options_.takeover->ChangeEnds(unique);
}

bool Core::Settle(Duration wait) {
  auto done = std::make_shared<std::promise<void>>();
  auto finished = done->get_future();
  files_.SyncAll([this, done] {
    open_files_.Tick();
    kept_.Tick();
    access_times_.SendAll();
    // Requests to the MDS keep their order: once it has answered this one it has got all of them.
    wire::InodeRequest request;
    request.set_inode(mds_->root().value);
    mds_->CallRaw(wire::MDS_GETATTR, request, true,
                  [done](const Result<net::Reply>&) { done->set_value(); });
  });
  return finished.wait_for(wait) == std::future_status::ready;
}

}  // namespace weir::client
