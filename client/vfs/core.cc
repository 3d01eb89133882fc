#include "client/vfs/core.h"

#include <algorithm>
#include <future>
#include <map>

#include "client/takeover/takeover_log.h"
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

}  // namespace

Core::Core(const ReactorNetworks& networks, Clock& clock, Options options)
    : networks_(networks),
      clock_(clock),
      options_(std::move(options)),
      session_(options_.takeover != nullptr ? options_.takeover->session() : RandomSeed()),
      inodes_([this](const InodePtr& inode) {
        files_.Forgotten(inode->id());
        kept_.Forgotten(inode);
      }),
      open_files_(inodes_, [this](const auto& inodes,
                                  auto done) { releases_.Release(inodes, std::move(done)); }),
      kept_(inodes_, [this](const auto& inodes,
                            const auto& blank) { releases_.ReleaseKept(inodes, blank); }),
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
      osds_(networks, clock,
            {.session = session_,
             .timeout = options_.timeout,
             .ids_above = IdsAbove(options_),
             .resend_interval = options_.resend_interval}),
      objects_(clock, osds_,
               {.windows = {.wake_by =
                                [this](TimePoint when) {
                                  limits_.WakeBy(limit_parts_.Wanted() ? TimePoint{0} : when);
                                }},
                .timeout = options_.timeout,
                .session = session_,
                .ids_above = IdsAbove(options_),
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
      releases_(inodes_, leases_, appends_, options_.takeover,
                {.tell_held = [this](const InodePtr& inode,
                                     auto told) { files_.TellHeld(inode, std::move(told)); },
                 .send = [this](const wire::ReleaseRequest& request,
                                auto ended) { SendRelease(request, std::move(ended)); }}),
      classes_(
          inodes_, [this] { return InodesInUse(); },
          [this](const auto& inodes, auto done) { AskClasses(inodes, done); }),
      news_(inodes_, leases_, directories_, classes_, files_.stamps()) {
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
  options.resend_interval = options_.resend_interval;
  MdsClient::Events events;
  events.on_map = [this](const MapPtr& map) { OnMap(map); };
  events.on_tags = [this](uint64_t tag_epoch) { classes_.TagsMoved(tag_epoch, leases_.Mark()); };
  events.times = [this] { return objects_.Times(); };
  events.kernel_path = options_.kernel_path;
  events.open_inodes = [this] {
    std::vector<InodeId> open = open_files_.All();
    releases_.ForgetAllowed(open);  // a session that begins anew has been allowed nothing
    return open;
  };
  events.on_told_open = [this](const auto& inodes) { open_files_.ToldOpen(inodes); };
  events.kept_inodes = [this] { return kept_.All(); };
  events.on_told_kept = [this](const auto& inodes) { kept_.Told(inodes); };
  events.held_locks = [this] { return locks_.ToTell(); };
  events.on_recall = [this](uint64_t seq, const auto& inodes) {
    lease_keeper_->Recalled(seq, inodes);
  };
  events.on_lost_leases = [this](const auto& written) {
    lease_keeper_->Lost(written, open_files_.All());
  };
  events.on_lock_question = [this](uint64_t seq) { SettleLocks(seq); };
  events.on_lost_locks = [this](const auto& locks) { OnLocksLost(locks); };
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

// Others had them meanwhile and may have changed the file: its users hear of it by an error; after
// an eviction those who had it open before it, and if one of the locks is of somebody who opened it
// since, before the MDS had dropped the session, all of them.
void Core::OnLocksLost(const std::vector<wire::FileLock>& locks) {
  const bool evicted = std::exchange(session_fence_, fenced_) != fenced_;
  std::map<InodeId, bool> opened_since;
  for (const wire::FileLock& lock : locks) {
    const InodeId id(lock.inode());
    const std::vector<uint64_t> through = locks_.Lost(lock);
    opened_since[id] |= std::any_of(through.begin(), through.end(), [&](uint64_t number) {
      const HandlePtr handle = handles_.Find(number);
      return handle != nullptr && handle->inode->id() == id &&
             handle->hears() == Inode::Hears::kAll;
    });
  }
  for (const auto& [id, since] : opened_since) {
    const bool told_all = !evicted || since;
    if (const InodePtr inode = inodes_.Find(id)) {
      inode->RememberError({ErrorCode::kIo, "locks were lost while the MDS was out of reach"},
                           told_all ? Inode::Hears::kAll : Inode::Hears::kFenced);
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

void Core::StoreAll(WriteCallback done) {
  files_.SyncAll([this, done = std::move(done)] { CommitNames({}, done); });
}

}  // namespace weir::client
