#include "client/vfs/core.h"

#include <algorithm>
#include <future>
#include <span>

#include "client/takeover/takeover_log.h"
#include "common/base/after_all.h"
#include "common/base/log.h"
#include "common/base/prng.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {
constexpr Duration kCloseSession = std::chrono::seconds(2);
constexpr Duration kDivideTimeout = std::chrono::seconds(1);  // by then there is more to say
constexpr size_t kDirectoriesResolved = 16'384;  // when tags move; others with their next reply

uint64_t IdsAbove(const Core::Options& options) {
  return options.takeover == nullptr ? 0 : options.takeover->ids_above();
}

FileLocks::Note NoteLocks(TakeoverLog* takeover) {
  if (takeover == nullptr) return nullptr;
  return [takeover](const LockAsk& ask) { takeover->Locked(ask); };
}

// Nobody knows whether what was asked for has been done.
bool MayHaveHappened(ErrorCode code) {
  return code == ErrorCode::kTimedOut || code == ErrorCode::kUnreachable ||
         code == ErrorCode::kCancelled;
}

}  // namespace

Core::Core(const ReactorNetworks& networks, Clock& clock, Options options)
    : networks_(networks),
      clock_(clock),
      options_(std::move(options)),
      session_(options_.takeover != nullptr ? options_.takeover->session() : RandomSeed()),
      inodes_([this](InodeId inode) {
        files_.Forgotten(inode);
        kept_.Forgotten(inode);
      }),
      open_files_(inodes_, [this](const auto& inodes, auto done) { SendRelease(inodes, done); }),
      kept_(inodes_, [this](const auto& inodes) { ReleaseKept(inodes); }),
      yields_([this](uint64_t epoch, uint64_t seq, const auto& inodes, auto done) {
        SendYield(epoch, seq, inodes, std::move(done));
      }),
      access_times_(clock, inodes_, options_.access_rules,
                    [this](const auto& reads, bool strict, auto done) {
                      SendReads(reads, strict, std::move(done));
                    }),
      locks_(
          [this](uint32_t method, const auto& request, bool idempotent, auto reply) {
            // Nobody knows how long a lock takes.
            mds_->Call<wire::LockReply>(method, request, idempotent, std::move(reply),
                                        Duration::max());
          },
          NoteLocks(options_.takeover), IdsAbove(options_)),
      callers_(clock, options_.read_rights, options_.read_thread_group),
      directories_(clock),
      leases_(clock, options_.exclusive),
      names_(clock, leases_),
      caller_classes_({options_.client_name, options_.mount_class}, options_.read_exe,
                      options_.read_cgroup),
      osds_(networks, clock, session_, options_.timeout, IdsAbove(options_)),
      objects_(clock, osds_,
               {.timeout = options_.timeout,
                .session = session_,
                .ids_above = IdsAbove(options_),
                .wake_by =
                    [this](TimePoint when) {
                      limits_.WakeBy(limit_parts_.Wanted() ? TimePoint{0} : when);
                    },
                .ask_removals = [this](auto done) { AskRemovals(std::move(done)); },
                .new_files = this}),
      limits_(clock, [this] { return std::min(limit_parts_.Poll(), objects_.SendDue()); }),
      limit_parts_(
          clock, objects_,
          [this](const wire::DivideLimitsRequest& request, LimitParts::OnReply on_reply) {
            mds_->Call<wire::DivideLimitsReply>(wire::MDS_DIVIDE_LIMITS, request, true,
                                                std::move(on_reply), kDivideTimeout);
          },
          // A successor goes on with the session.
          static_cast<uint64_t>(clock.Now().ns)),
      files_(clock, objects_, inodes_, caller_classes_, leases_, *this, options_.file_io),
      appends_({[this](InodeId inode, auto done) { AskAppend(inode, std::move(done)); },
                [this](InodeId inode, auto done) { SettleAppend(inode, std::move(done)); },
                [this](InodeId inode, uint64_t grant) { GiveBackAppend(inode, grant); }}),
      classes_(
          inodes_, [this] { return InodesInUse(); },
          [this](const auto& inodes, auto done) { AskClasses(inodes, done); }) {
  if (options_.takeover != nullptr && options_.takeover->is_successor()) Resume();
}

Core::~Core() {
  Shutdown(Duration::zero());
}

Status Core::Connect() {
  MdsClient::Options options;
  options.endpoint = options_.mds_endpoint;
  options.client_name = options_.client_name;
  options.mount_class = options_.mount_class;
  options.mounter = options_.mounter;
  options.mounter_groups = options_.mounter_groups;
  options.exclusive = options_.exclusive;
  options.subtree = options_.subtree;
  options.session = session_;
  if (options_.takeover != nullptr) {
    options.resumes = options_.takeover->is_successor();
    options.ids_above = options_.takeover->ids_above();
    options.reserved_ids = options_.takeover->LeftIds();
  }
  // An exclusive mount lets the kernel remember instead.
  if (options_.exclusive) {
    directories_.BeginAlone();
  } else {
    options.directories = &directories_;
    options.files = &leases_;
    lease_keeper_ = std::make_unique<LeaseKeeper>(leases_, inodes_, LeaseHooks());
  }
  options.ordered = &ordered_;
  options.ordered_within = options_.ordered_within;
  options.keeps = options_.keeps;
  options.timeout = options_.timeout;
  options.connect_timeout = options_.connect_timeout;
  MdsClient::Events events;
  events.on_map = [this](const MapPtr& map) { OnMap(map); };
  events.on_tags = [this](uint64_t tag_epoch) { classes_.TagsMoved(tag_epoch, leases_.Mark()); };
  events.times = [this] { return objects_.Times(); };
  events.kernel_path = options_.kernel_path;
  events.open_inodes = [this] {
    std::vector<InodeId> open = open_files_.All();
    ForgetAllowed(open);  // a session that begins anew has been allowed nothing
    return open;
  };
  events.on_told_open = [this](const auto& inodes) { open_files_.ToldOpen(inodes); };
  events.kept_inodes = [this] { return kept_.All(); };
  events.on_told_kept = [this](const auto& inodes) { kept_.Told(inodes); };
  events.held_locks = [this] { return locks_.Held(); };
  events.on_recall = [this](uint64_t seq, const auto& inodes) {
    lease_keeper_->Recalled(seq, inodes);
  };
  events.on_lost_leases = [this](const auto& written) {
    lease_keeper_->Lost(written, open_files_.All());
  };
  events.on_lock_question = [this](uint64_t seq) { SettleLocks(seq); };
  events.on_lost_locks = [this](const std::vector<InodeId>& inodes) { OnLocksLost(inodes); };
  events.on_append_recall = [this](const auto& inodes) { appends_.Recall(inodes); };
  events.on_lost_names = [](size_t count) {
    WEIR_LOG_ERROR(
        "the metadata server began anew, and {} changes of names that were answered and "
        "not durable yet are lost",
        count);
  };
  events.on_session_lost = [this] { appends_.Lost(); };
  WEIR_ASSIGN_OR_RETURN(mds_, MdsClient::Connect(networks_, clock_, options, std::move(events)));
  return Status::Ok();
}

Status Core::Open(std::function<void()> on_tick) {
  on_tick_ = std::move(on_tick);
  WEIR_RETURN_IF_ERROR(Connect());
  WEIR_RETURN_IF_ERROR(mds_->Open());
  if (options_.takeover != nullptr && options_.takeover->is_successor()) RefreshOpenFiles();
  limits_.Start();
  ticks_ = std::thread([this] { TickLoop(); });
  return Status::Ok();
}

void Core::OpenAsync(std::function<void(const Status&)> done) {
  if (const Status connected = Connect(); !connected.ok()) return done(connected);
  mds_->OpenAsync(std::move(done));
}

LeaseKeeper::Hooks Core::LeaseHooks() {
  LeaseKeeper::Hooks hooks;
  hooks.forget_pages = options_.forget_pages;
  hooks.forget_attributes = options_.forget_attributes;
  hooks.waits_for_page = options_.waits_for_page;
  hooks.forget_here = options_.forget_here;
  hooks.flush = [this](const InodePtr& inode, std::function<void()> done) {
    files_.Sync(inode, false, [inode, done = std::move(done)](const Status& status) {
      if (!status.ok()) inode->RememberError(status);  // for its next fsync or close
      done();
    });
  };
  hooks.yield = [this](uint64_t epoch, uint64_t seq, const auto& inodes, auto done) {
    yields_.Yield(epoch, seq, inodes, std::move(done));
  };
  return hooks;
}

std::shared_ptr<void> Core::BeginKernelWrite(InodeId inode) {
  return lease_keeper_ == nullptr ? nullptr : lease_keeper_->BeginKernelWrite(inode);
}

void Core::SendYield(uint64_t epoch, uint64_t seq, const std::vector<InodeId>& inodes,
                     std::function<void()> done) {
  wire::YieldRequest request;
  request.set_epoch(epoch);
  request.set_seq(seq);
  for (const InodeId inode : inodes) request.add_inodes(inode.value);
  mds_->CallRaw(
      wire::MDS_YIELD, request, true,
      [done = std::move(done)](const Result<net::Reply>&) { done(); }, Duration::max());
}

uint32_t Core::GenerationOf(const ClusterMap& map) {
  const uint64_t hash = map.ClusterHash();
  const uint32_t ours = std::max(static_cast<uint32_t>(hash ^ hash >> 32), 1u);
  return options_.takeover == nullptr ? ours : options_.takeover->Generation(ours);
}

void Core::OnMap(const MapPtr& map) {
  const auto fence = map->fences.find(net::SessionOf(session_));
  if (fence != map->fences.end() && fenced_ < fence->second) {
    // What is older than this map must not go out under it.
    fenced_ = fence->second;
    if (options_.takeover != nullptr) options_.takeover->Fenced(fenced_.value);
    WEIR_LOG_WARN(
        "the MDS could not hear this mount and gave its files to others: what was not "
        "stored is lost, and what was open must be opened again");
    caller_classes_.Fence();
    objects_.DropFenced();
    files_.Evicted();
    eviction_waits_.Heard(fenced_.value);
  }
  if (generation_ == 0) generation_ = GenerationOf(*map);
  map_epoch_ = map->epoch.value;
  caller_classes_.SetMap(map);
  osds_.SetMap(*map);
  objects_.SetMap(map);
  files_.SetMap(*map);
}

void Core::AwaitEviction(uint64_t epoch, TimePoint until, std::function<void(const Status&)> then) {
  eviction_waits_.Await(epoch, until, std::move(then));
}

void Core::AfterKernel(std::function<void()> then) {
  if (options_.after_kernel) return options_.after_kernel(std::move(then));
  then();
}

// The kernel says that a file with locks is closed when the last I/O of it is over: so it is asked
// once more after that.
void Core::SettleLocks(uint64_t seq) {
  auto tell = [this, seq] {
    wire::LocksSettledRequest request;
    request.set_seq(seq);
    mds_->CallRaw(wire::MDS_LOCKS_SETTLED, request, true, [](const Result<net::Reply>&) {});
  };
  AfterKernel([this, tell] {
    locks_.WhenEnded([this, tell] { AfterKernel([this, tell] { locks_.WhenEnded(tell); }); });
  });
}

// Others had them meanwhile and may have changed the file: its users hear of it by an error.
void Core::OnLocksLost(const std::vector<InodeId>& inodes) {
  for (const InodeId id : inodes) {
    locks_.Lost(id);
    if (options_.takeover != nullptr) options_.takeover->LocksLost(id);
    if (const InodePtr inode = inodes_.Find(id)) {
      inode->RememberError({ErrorCode::kIo, "locks were lost while the MDS was out of reach"});
    }
  }
}

void Core::WakeTicks() {
  access_times_.Wake();
  const std::lock_guard lock(tick_mutex_);
  tick_wakes_.notify_all();
}

void Core::TickLoop() {
  std::unique_lock lock(tick_mutex_);
  while (!stop_ticks_) {
    const Duration sleep = tick_pace_.Next(false);
    tick_wakes_.wait_for(lock, sleep, [this] { return stop_ticks_ || tick_pace_.woken(); });
    if (stop_ticks_) return;
    lock.unlock();
    Tick();
    on_tick_();
    lock.lock();
  }
}

void Core::Tick() {
  mds_->Tick();
  osds_.Tick();
  objects_.Tick();
  limit_parts_.Poll();  // who has no thread has no waker either
  objects_.SendDue();
  files_.Tick();
  open_files_.Tick();
  kept_.Tick();
  access_times_.Tick();
  names_.Tick();
  if (lease_keeper_ != nullptr) lease_keeper_->Tick(clock_.Now());
  classes_.Tick();
  eviction_waits_.Tick(clock_.Now());
  if (free_left_at_ <= clock_.Now()) FreeLeftIds();
}

void Core::Abandon() {
  shut_down_ = true;
  eviction_waits_.Stop();
  if (lease_keeper_ != nullptr) lease_keeper_->Stop();
  objects_.Stop();
  limits_.Stop();
  osds_.Stop();
  if (mds_ != nullptr) mds_->Stop();
}

bool Core::Shutdown(Duration wait) {
  if (std::exchange(shut_down_, true)) return true;
  bool flushed = true;
  if (ticks_.joinable()) {
    auto done = std::make_shared<std::promise<Status>>();
    auto finished = done->get_future();
    StoreAll([done](Status status) { done->set_value(std::move(status)); });
    flushed = finished.wait_for(wait) == std::future_status::ready && finished.get().ok();
    {
      std::lock_guard lock(tick_mutex_);
      stop_ticks_ = true;
    }
    tick_wakes_.notify_all();
    ticks_.join();
  }
  eviction_waits_.Stop();
  if (mds_ != nullptr) access_times_.SendAll();
  if (lease_keeper_ != nullptr) lease_keeper_->Stop();
  objects_.Stop();
  limits_.Stop();
  osds_.Stop();
  if (mds_ != nullptr) {
    mds_->Close(kCloseSession);
    mds_->Stop();
  }
  return flushed;
}

// Open files, whose data is charged, and directories, on which names are looked up and changed.
std::vector<InodeId> Core::InodesInUse() const {
  std::vector<InodeId> inodes = open_files_.All();
  const std::vector<InodeId> directories = inodes_.Directories(kDirectoriesResolved);
  inodes.insert(inodes.end(), directories.begin(), directories.end());
  return inodes;
}

void Core::LearnClass(Inode& inode, const wire::EntryReply& reply, uint64_t asked) {
  if (!reply.has_effective_class()) return;
  const wire::EffectiveClass& found = reply.effective_class();
  classes_.Heard(inode, found.tagged() ? std::optional(ClassId(found.class_id())) : std::nullopt,
                 asked);
}

// Alone, every stamp is of one clock.
FileAttr Core::Heard(const wire::Attr& attr) {
  if (!options_.exclusive) (void)files_.stamps().Saw(attr.ctime_ns());
  return FromWire(attr);
}

void Core::ReportWrote(InodeId inode, const Inode::Report& report, bool commit,
                       std::function<void(Result<FileAttr>)> callback) {
  wire::WroteRequest request;
  const int64_t mtime_ns = options_.kernel_times ? 0 : report.mtime_ns;
  request.set_inode(inode.value);
  request.set_size_at_least(report.size_at_least);
  request.set_mtime_ns(mtime_ns);
  request.set_kill_suid(report.lost.set_ids);
  request.set_kill_capability(report.lost.capability);
  request.set_commit(commit);
  request.set_class_id(report.class_id.value);
  request.mutable_space()->set_wrote_bytes(report.space.wrote);
  request.mutable_space()->set_freed_bytes(report.space.freed);
  request.set_epoch(report.epoch);
  // Without time or attributes it would say that something was written just now.
  if (mtime_ns == 0 || !report.held.empty()) {
    const HeldAttributes& held = report.held;
    auto* attributes = request.mutable_attributes();
    if (held.mode.has_value()) attributes->set_mode(*held.mode);
    if (held.uid.has_value()) attributes->set_uid(*held.uid);
    if (held.gid.has_value()) attributes->set_gid(*held.gid);
    if (held.atime_ns.has_value()) attributes->set_atime_ns(*held.atime_ns);
    if (held.mtime_ns.has_value()) attributes->set_mtime_ns(*held.mtime_ns);
    if (!held.empty()) attributes->set_ctime_ns(held.ctime_ns);
  }
  mds_->Call<wire::EntryReply>(wire::MDS_WROTE, request, false,
                               [this, inode, asked = leases_.Asked(),
                                callback = std::move(callback)](Result<wire::EntryReply> reply) {
                                 if (!reply.ok()) return callback(reply.status());
                                 callback(Heard(reply->attr()));
                                 const InodePtr known = inodes_.Find(inode);
                                 if (known != nullptr) leases_.Learn(known, *reply, asked);
                               });
}

void Core::StoreAll(WriteCallback done) {
  files_.SyncAll([this, done = std::move(done)] { CommitNames(done); });
}

void Core::Commit(uint64_t order, WriteCallback callback) {
  const auto lost = [] {
    return Status(ErrorCode::kIo,
                  "the metadata server began anew without what it had answered here");
  };
  if (ordered_.TakeLoss()) return callback(lost());
  if (ordered_.IsDurable(order)) return callback(Status::Ok());
  mds_->Commit([this, lost, callback = std::move(callback)](const Status& status) {
    callback(status.ok() && ordered_.TakeLoss() ? lost() : status);
  });
}

void Core::ReportAllocated(InodeId inode, const AllocatedReport& report,
                           const Allocation& allocation, WriteCallback callback) {
  wire::AllocatedRequest request;
  request.set_inode(inode.value);
  request.set_end(report.end);
  request.set_keep_size(report.keep_size);
  request.set_grown_bytes(allocation.grown_bytes);
  request.set_beyond_bytes(allocation.beyond_bytes);
  request.set_mtime_ns(report.mtime_ns);
  request.set_keeps_times(options_.kernel_times);
  request.set_kill_suid(report.lost.set_ids);
  request.set_kill_capability(report.lost.capability);
  request.set_class_id(report.class_id.value);
  request.set_epoch(report.epoch);
  for (const auto& [osd, used] : allocation.used_bytes) {
    auto* use = request.add_used();
    use->set_osd(osd.value);
    use->set_used_bytes(used);
  }
  mds_->Call<wire::EntryReply>(wire::MDS_ALLOCATED, request, false,
                               [this, inode, asked = leases_.Asked(),
                                callback = std::move(callback)](Result<wire::EntryReply> reply) {
                                 if (!reply.ok()) return callback(reply.status());
                                 const InodePtr known = inodes_.Find(inode);
                                 if (known != nullptr) {
                                   known->Update(FromWire(reply->attr()));
                                   leases_.Learn(known, *reply, asked);
                                 }
                                 callback(Status::Ok());
                               });
}

void Core::AskRoom(InodeId inode, ClassId class_id, uint64_t end,
                   std::function<void(Result<uint64_t>)> callback) {
  wire::GrowRequest request;
  request.set_inode(inode.value);
  request.set_class_id(class_id.value);
  request.set_end(end);
  auto answer = [callback = std::move(callback)](const Result<wire::GrowReply>& reply) {
    if (!reply.ok()) return callback(reply.status());
    callback(reply->end());
  };
  // What was removed here right after it was closed the MDS takes to be open still.
  auto once_more = [this, request, answer](const Result<wire::GrowReply>& reply) {
    if (reply.code() != ErrorCode::kQuota) return answer(reply);
    open_files_.Tick();
    kept_.Tick();
    if (releases_ == 0) return answer(reply);
    mds_->Call<wire::GrowReply>(wire::MDS_GROW, request, true, answer);
  };
  mds_->Call<wire::GrowReply>(wire::MDS_GROW, request, true, once_more);
}

void Core::ForgetAllowed(const std::vector<InodeId>& inodes) {
  for (const InodeId id : inodes) {
    if (const InodePtr inode = inodes_.Find(id)) inode->ForgetAllowed();
  }
}

void Core::AskAppend(InodeId inode, std::function<void(Result<uint64_t>)> done) {
  wire::InodeRequest request;
  request.set_inode(inode.value);
  mds_->Call<wire::AppendReply>(
      wire::MDS_APPEND, request, false,
      [this, inode, done = std::move(done)](Result<wire::AppendReply> reply) {
        if (!reply.ok()) return done(reply.status());
        const InodePtr known = inodes_.Find(inode);
        if (known != nullptr) known->Update(Heard(reply->attr()));
        done(reply->grant());
      });
}

void Core::SettleAppend(InodeId inode, std::function<void()> done) {
  const InodePtr known = inodes_.Find(inode);
  if (known == nullptr) return done();
  files_.Sync(known, false, [known, done = std::move(done)](const Status& status) {
    if (!status.ok()) known->RememberError(status);  // for the next fsync or close
    done();
  });
}

void Core::GiveBackAppend(InodeId inode, uint64_t grant) {
  wire::GiveBackRequest request;
  request.set_inode(inode.value);
  request.set_grant(grant);
  mds_->CallRaw(wire::MDS_GIVE_BACK, request, true, [](const Result<net::Reply>&) {});
}

void Core::Changed(std::initializer_list<InodeId> inodes) {
  for (const InodeId id : inodes) {
    if (const InodePtr inode = inodes_.Find(id)) {
      leases_.Changed(inode.get());
    } else {
      leases_.Changed();
    }
  }
}

void Core::NamesChanged(DirCache::Changing* changing, const Result<wire::EntryReply>& reply) {
  const wire::Attr* const told =
      reply.ok() && reply->has_directory() ? &reply->directory() : nullptr;
  TakeDirectories(changing, {&told, told == nullptr ? size_t{0} : size_t{1}});
}

void Core::NamesChanged(DirCache::Changing* changing, const Result<wire::TouchedReply>& reply) {
  if (!reply.ok()) {
    TakeDirectories(changing, {});
    if (MayHaveHappened(reply.code())) leases_.Changed();
    return;
  }
  TakeDirectories(changing, {reply->directories().data(), size_t(reply->directories_size())});
  if (reply->inodes().empty()) leases_.Changed();  // an older MDS does not tell
  for (const uint64_t inode : reply->inodes()) Changed({InodeId(inode)});
}

// `told`: directories as they are after a change of ours; the others are to be asked for. Until it
// ends here, the kernel is given nothing of them to keep.
void Core::TakeDirectories(DirCache::Changing* changing, std::span<const wire::Attr* const> told) {
  for (const InodeId id : DirCache::DirectoriesOf(*changing)) {
    const auto now = std::find_if(told.begin(), told.end(),
                                  [id](const wire::Attr* one) { return one->inode() == id.value; });
    const InodePtr inode = inodes_.Find(id);
    if (now == told.end() || inode == nullptr) {
      Changed({id});
    } else {
      (void)inodes_.Update(inode, Heard(**now));
    }
  }
  directories_.End(changing);
}

// With the lease goes the right to hold attributes: those that are held go first.
void Core::SendRelease(const std::vector<InodeId>& inodes, std::function<void()> done) {
  ++releases_;
  ForgetAllowed(inodes);
  appends_.Recall(inodes);
  for (const InodeId id : inodes) leases_.BeginRelease(id);
  const auto told = AfterAll(inodes.size(),
                             [this, inodes, done = std::move(done)] { ReleaseTold(inodes, done); });
  for (const InodeId id : inodes) {
    leases_.WhenQuiet(id, [this, id, told] {
      const InodePtr inode = inodes_.Find(id);
      if (inode == nullptr) return told();
      files_.TellHeld(inode, told);
    });
  }
}

void Core::ReleaseTold(const std::vector<InodeId>& inodes, std::function<void()> done) {
  wire::ReleaseRequest request;
  for (InodeId inode : inodes) request.add_inodes(inode.value);
  mds_->CallRaw(wire::MDS_RELEASE, request, false,
                [this, inodes, done = std::move(done)](const Result<net::Reply>&) {
                  for (const InodeId id : inodes) leases_.EndRelease(id);
                  if (options_.takeover != nullptr) options_.takeover->Released(inodes);
                  --releases_;
                  done();
                });
}

void Core::ReleaseKept(const std::vector<InodeId>& inodes) {
  wire::ReleaseRequest request;
  for (const InodeId inode : inodes) request.add_kept(inode.value);
  ++releases_;
  mds_->CallRaw(wire::MDS_RELEASE, request, false,
                [this](const Result<net::Reply>&) { --releases_; });
}

// The MDS counts what stays for a moment since others may ask for it, too. What is on its way to be
// released here it may not know of yet.
void Core::AskRemovals(std::function<void(Result<uint64_t>)> done) {
  open_files_.Tick();
  kept_.Tick();
  const uint64_t here = releases_;
  mds_->Call<wire::StatusReply>(
      wire::MDS_STATUS, wire::Empty(), true,
      [here, done = std::move(done)](const Result<wire::StatusReply>& reply) {
        if (!reply.ok()) return done(reply.status());
        done(reply->pending_purges() + here);
      });
}

void Core::SendReads(const std::vector<AccessTimes::Read>& reads, bool strict,
                     std::function<void()> done) {
  if (reads.empty()) return done();
  wire::AccessedRequest request;
  for (const AccessTimes::Read& read : reads) {
    auto* told = request.add_reads();
    told->set_inode(read.inode.value);
    told->set_age_ns(read.age_ns);
  }
  request.set_strict(strict);
  mds_->CallRaw(wire::MDS_ACCESSED, request, true,
                [done = std::move(done)](const Result<net::Reply>&) { done(); });
}

void Core::AskClasses(const std::vector<InodeId>& inodes,
                      std::function<void(Result<ClassResolver::Answer>)> done) {
  wire::ResolveClassesRequest request;
  for (InodeId inode : inodes) request.add_inodes(inode.value);
  mds_->Call<wire::ResolveClassesReply>(
      wire::MDS_RESOLVE_CLASSES, request, true,
      [done = std::move(done)](Result<wire::ResolveClassesReply> reply) {
        if (!reply.ok()) return done(reply.status());
        ClassResolver::Answer answer;
        answer.tag_epoch = reply->tag_epoch();
        for (const auto& entry : reply->classes()) {
          answer.classes.push_back(entry.tagged() ? std::optional(ClassId(entry.class_id()))
                                                  : std::nullopt);
        }
        done(std::move(answer));
      });
}

}  // namespace weir::client
