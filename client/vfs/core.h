// Core: everything of a mount but FUSE, put together: MDS and OSD connections, the object windows,
// inodes and handles, data paths, and the thread whose ticks drive what depends on time.
//
// Threads: all members may be used from any thread between Open and Shutdown.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client/data/file_io.h"
#include "client/remote/limit_parts.h"
#include "client/remote/mds_client.h"
#include "client/remote/object_io.h"
#include "client/remote/ordered_names.h"
#include "client/remote/osd_client.h"
#include "client/remote/reactor_networks.h"
#include "client/vfs/access_times.h"
#include "client/vfs/append_rights.h"
#include "client/vfs/caller.h"
#include "client/vfs/caller_classes.h"
#include "client/vfs/class_resolver.h"
#include "client/vfs/dir_cache.h"
#include "client/vfs/eviction_waits.h"
#include "client/vfs/file_leases.h"
#include "client/vfs/file_locks.h"
#include "client/vfs/file_releases.h"
#include "client/vfs/handle_table.h"
#include "client/vfs/inode_news.h"
#include "client/vfs/inode_table.h"
#include "client/vfs/kept_inodes.h"
#include "client/vfs/kernel_names.h"
#include "client/vfs/lease_keeper.h"
#include "client/vfs/open_files.h"
#include "client/vfs/yield_batches.h"
#include "common/base/tick_pace.h"
#include "common/base/waker.h"
#include "common/net/rpc.h"
#include "common/net/sub_session.h"
#include "common/posix/kernel_path.h"

namespace weir::wire {
class Attr;
class ReleaseRequest;
class TouchedReply;
}  // namespace weir::wire

namespace weir::client {

class TakeoverLog;
struct OpenedFile;

class Core final : private WriteReporter, private NewFiles {
 public:
  struct Options {
    std::string mds_endpoint;
    std::string client_name;
    std::string mount_class;
    bool exclusive = false;
    // Changes of names are answered before they are durable, which they are so soon; 0: are not.
    Duration ordered_within{0};
    bool keeps = false;  // them, for an MDS that begins anew: it is another process
    std::string subtree;
    Duration timeout = Duration::max();
    Duration connect_timeout = std::chrono::seconds(10);
    Duration resend_interval = net::RpcClient::Options().resend_interval;
    FileIo::Options file_io;
    // Which reads move access times; asked for every read.
    std::function<AccessTimes::Rules()> access_rules = [] { return AccessTimes::Rules(); };
    // The kernel writes back: times of files are its, and it tells them with SETATTR.
    bool kernel_times = false;
    Callers::Read read_rights = [](const CallerId&) { return CallerRights(); };
    Callers::ReadGroup read_thread_group;  // empty: nobody's is known
    CallerClasses::ReadText read_exe = [](pid_t, uid_t) { return std::string(); };
    CallerClasses::ReadText read_cgroup = [](pid_t, uid_t) { return std::string(); };
    CallerId mounter;  // whose right to the mount's class the MDS checks
    std::vector<gid_t> mounter_groups;
    // Notes for a successor; what a predecessor left there is gone on with. Null: there is none.
    TakeoverLog* takeover = nullptr;
    // The kernel forgets what it has of a file; waits for it. May be empty.
    std::function<void(InodeId)> forget_pages;
    // See lease_keeper.h.
    std::function<void(InodeId)> forget_attributes;
    std::function<bool(pid_t)> waits_for_page;
    // Runs `then` when all that the kernel had asked for before has begun. Empty: there is no
    // kernel.
    std::function<void(std::function<void()> then)> after_kernel;
    std::function<void(InodeId)> forget_here;  // instead, see lease_keeper.h
    // How requests come from the kernel, for whoever asks the MDS. Empty: nobody is told.
    std::function<KernelPath()> kernel_path;
  };
  // `networks` outlives it.
  Core(const ReactorNetworks& networks, Clock& clock, Options options);
  ~Core() override;

  // Connects, waits for the session, starts the ticks; `on_tick` runs with each of them.
  Status Open(std::function<void()> on_tick);
  // The kernel asks for something: ticks come often until it has not for a while.
  void Used() {
    if (tick_pace_.Used()) WakeTicks();
  }
  // The same without a thread and without waiting: the owner calls Tick some ten times a second
  // once `done` has run with ok.
  void OpenAsync(std::function<void(const Status&)> done);
  void Tick();
  // What the MDS and the OSDs know this mount by.
  [[nodiscard]] uint64_t session() const { return net::SessionOf(session_); }
  // Ends it as a crash does: nothing is flushed, the session is not given back, operations that are
  // under way end with an error. Instead of Shutdown.
  void Abandon();
  // Everything that is buffered is stored, and what was closed released, for a successor to go on:
  // instead of Shutdown, when nothing more is asked. False: not in that time.
  bool Settle(Duration wait);
  // Flushes what is buffered and closes the session, waiting at most this long; afterwards no
  // callback of any operation is outstanding. False: data was lost on the way.
  bool Shutdown(Duration wait);

  Clock& clock() { return clock_; }
  TakeoverLog* takeover() { return options_.takeover; }
  // Of every inode but the root: the same for whoever mounts this cluster, another for another one,
  // which gives the same numbers to other files.
  [[nodiscard]] uint32_t generation() const { return generation_; }
  MdsClient& mds() { return *mds_; }
  InodeTable& inodes() { return inodes_; }
  // Whether somebody waits for small requests by contract.
  [[nodiscard]] bool hurried() const { return osds_.any_bounded(); }
  HandleTable& handles() { return handles_; }
  OpenFiles& open_files() { return open_files_; }
  KeptInodes& kept() { return kept_; }
  FileIo& files() { return files_; }
  Callers& callers() { return callers_; }
  CallerClasses& classes() { return caller_classes_; }
  DirCache& directories() { return directories_; }
  FileLeases& leases() { return leases_; }
  KernelNames& names() { return names_; }
  [[nodiscard]] const OrderedNames& ordered() const { return ordered_; }
  // `done` when all that the MDS has answered by now is durable. `inode`: on whose behalf, if of
  // one in particular.
  void CommitNames(InodeId inode, WriteCallback done) {
    Commit(ordered_.last(), inode, std::move(done));
  }
  // Everything that is buffered is stored, then names are committed: before the session is given
  // back, which an MDS that has just begun anew would take for the end of what is to be repeated.
  void StoreAll(WriteCallback done);
  // Of what replies tell: inode_news.h.
  void Changed(std::initializer_list<InodeId> inodes) { news_.Changed(inodes); }
  void NamesChanged(DirCache::Changing* changing, const Result<wire::EntryReply>& reply) {
    news_.NamesChanged(changing, reply);
  }
  void NamesChanged(DirCache::Changing* changing, const Result<wire::TouchedReply>& reply) {
    news_.NamesChanged(changing, reply);
  }
  void LearnClass(Inode& inode, const wire::EntryReply& reply, uint64_t asked) {
    news_.LearnClass(inode, reply, asked);
  }
  FileAttr Heard(const wire::Attr& attr) { return news_.Heard(attr); }
  // Of the map that is obeyed. Read before an opener is made, it says of an open what the MDS is
  // to judge by.
  [[nodiscard]] uint64_t map_epoch() const override { return map_epoch_; }
  // The MDS has refused an open under that epoch with kStaleEpoch, as it has evicted this mount:
  // `then` runs in a Tick when that is known here, or with kTimedOut after `until`.
  void AwaitEviction(uint64_t epoch, TimePoint until, std::function<void(const Status&)> then);
  // Of the kernel, until the result is destroyed; null where no mount could be in its way.
  std::shared_ptr<void> BeginKernelWrite(InodeId inode);
  FileLocks& locks() { return locks_; }
  AccessTimes& access_times() { return access_times_; }
  ObjectIo& objects() { return objects_; }
  AppendRights& appends() { return appends_; }
  // How many files are removed whose data is not gone yet: there will be more room.
  void AskRemovals(std::function<void(Result<uint64_t>)> done);

 private:
  void ReportWrote(InodeId inode, const Inode::Report& report, bool commit,
                   std::function<void(Result<FileAttr>)> callback) override;
  void ReportAllocated(InodeId inode, const AllocatedReport& report, const Allocation& allocation,
                       WriteCallback callback) override;
  void AskAttributes(InodeId inode, WriteCallback callback) override;
  void AskRoom(InodeId inode, ClassId class_id, uint64_t end,
               std::function<void(Result<uint64_t>)> callback) override;
  [[nodiscard]] uint64_t last_order() const override { return ordered_.last(); }
  void CommitUnless(uint64_t order, std::function<bool()> is_lost, WriteCallback callback);
  void Commit(uint64_t order, InodeId inode, WriteCallback callback) override;
  [[nodiscard]] bool IsNew(InodeId inode) const override { return ordered_.IsNew(inode); }
  void AwaitDurable(InodeId inode, WriteCallback callback) override;
  void Changes(InodeId id) override {
    if (const InodePtr inode = inodes_.Find(id)) inode->Touch();
  }
  void AskAppend(InodeId inode, std::function<void(Result<uint64_t>)> done);
  void SettleAppend(InodeId inode, std::function<void()> done);
  void GiveBackAppend(InodeId inode, uint64_t grant);
  void SendReads(const std::vector<AccessTimes::Read>& reads, bool strict,
                 std::function<void()> done);
  void SendRelease(const wire::ReleaseRequest& request, std::function<void()> ended);
  void AskClasses(const std::vector<InodeId>& inodes,
                  std::function<void(Result<ClassResolver::Answer>)> done);
  Status Connect();
  uint32_t GenerationOf(const ClusterMap& map);
  void OnMap(const MapPtr& map);
  LeaseKeeper::Hooks LeaseHooks();
  void SendYield(uint64_t epoch, uint64_t seq, const std::vector<InodeId>& inodes,
                 std::function<void()> done);
  void SettleLocks(uint64_t seq);
  void AfterKernel(std::function<void()> then);
  void OnLocksLost(const std::vector<wire::FileLock>& locks);
  void TickLoop();
  void WakeTicks();
  std::vector<InodeId> InodesInUse() const;
  // What a predecessor left: before the session is opened, and what the MDS knows of it after.
  void Resume();
  void ResumeFile(const OpenedFile& file);
  void RefreshOpenFiles();
  void FreeLeftIds();

  const ReactorNetworks& networks_;
  Clock& clock_;
  const Options options_;
  const uint64_t session_;
  OrderedNames ordered_;
  InodeTable inodes_;
  HandleTable handles_;
  OpenFiles open_files_;
  KeptInodes kept_;
  YieldBatches yields_;
  AccessTimes access_times_;
  FileLocks locks_;
  Callers callers_;
  DirCache directories_;
  FileLeases leases_;
  KernelNames names_;
  CallerClasses caller_classes_;
  OsdClient osds_;
  ObjectIo objects_;
  Waker limits_;  // of classes, in objects_
  LimitParts limit_parts_;
  FileIo files_;
  AppendRights appends_;
  FileReleases releases_;
  ClassResolver classes_;
  InodeNews news_;
  std::unique_ptr<MdsClient> mds_;
  std::unique_ptr<LeaseKeeper> lease_keeper_;
  std::atomic<uint64_t> map_epoch_{0};
  std::atomic<uint32_t> generation_{0};  // 0: no map has come
  Epoch fenced_;                         // on the thread that brings maps
  Epoch session_fence_;                  // fenced_ as the last session began; on that thread
  EvictionWaits eviction_waits_;
  TimePoint free_left_at_ = TimePoint::Max();

  std::function<void()> on_tick_;
  std::mutex tick_mutex_;
  std::condition_variable tick_wakes_;
  TickPace tick_pace_;
  bool stop_ticks_ = false;
  bool shut_down_ = false;
  std::thread ticks_;
};

}  // namespace weir::client
