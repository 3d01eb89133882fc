#include "client/fuse/mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "client/fuse/filesystem.h"
#include "client/fuse/init_reply.h"
#include "client/fuse/kernel_reactors.h"
#include "client/fuse/kernel_tuning.h"
#include "client/fuse/mount_flags.h"
#include "client/fuse/process.h"
#include "client/fuse/request_handler.h"
#include "client/fuse/resend.h"
#include "client/fuse/ring_support.h"
#include "client/remote/reactor_networks.h"
#include "client/takeover/takeover_log.h"
#include "client/vfs/core.h"
#include "common/base/awake_processors.h"
#include "common/base/log.h"
#include "common/base/prng.h"

namespace weir::client {
namespace {

constexpr uint64_t kReadAheadKib = 4096;
constexpr uint32_t kKernelQueue = 4096;
constexpr auto kLazyUnmountGrace = std::chrono::seconds(2);
constexpr Duration kAnswersAwaited = std::chrono::milliseconds(300);
constexpr Duration kAnswerLook = std::chrono::milliseconds(5);

// The process that stays when others take turns to serve.
std::string DefaultClientName(const Mount::Options& options) {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof(host) - 1);
  return std::string(host) + ":" + std::to_string(options.state_fd < 0 ? getpid() : getppid());
}

std::vector<gid_t> OwnGroups() {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return groups;
}

CallerRights ReadRights(const CallerId& caller) {
  if (auto rights = RightsOf(caller)) return *std::move(rights);
  static std::once_flag told;
  std::call_once(told, [&caller] {
    WEIR_LOG_WARN(
        "groups and capabilities of process {} of uid {} cannot be seen in /proc, as {}: what the "
        "kernel allows such processes is granted, and rules by group or program do not match them "
        "(this is said once)",
        caller.pid, caller.uid,
        SeesProcess(caller.pid) ? "it is gone, hidden or acts for another user"
                                : "weirfs runs in another PID namespace");
  });
  CallerRights unknown;
  unknown.known = false;
  return unknown;
}

AccessTimes::Rules WantedRules(const Mount::Options& options) {
  using Rule = AccessTimes::Rule;
  const Rule rule = options.strictatime ? Rule::kStrict : Rule::kRelative;
  const bool never = options.noatime || options.read_only;
  return {never ? Rule::kNever : rule, never || options.nodiratime ? Rule::kNever : rule};
}

Core::Options CoreOptions(const std::string& endpoint, const Mount::Options& options,
                          TakeoverLog* takeover, MountFlags* flags,
                          std::function<void(InodeId)> forget_pages,
                          std::function<void(InodeId)> forget_attributes,
                          std::function<void(std::function<void()>)> after_kernel,
                          std::function<KernelPath()> kernel_path) {
  Core::Options core;
  core.mds_endpoint = endpoint;
  core.client_name = options.client_name.empty() ? DefaultClientName(options) : options.client_name;
  core.mount_class = options.mount_class;
  core.read_rights = ReadRights;
  core.read_thread_group = ThreadGroupOf;
  core.read_exe = ExecutableOf;
  core.read_cgroup = CgroupOf;
  core.mounter = {getuid(), getgid(), getpid()};
  core.mounter_groups = OwnGroups();
  core.exclusive = options.exclusive;
  // A successor would not know what is to be repeated.
  core.ordered_within = takeover == nullptr ? options.commit : Duration::zero();
  core.keeps = !options.exclusive;
  core.subtree = options.subtree;
  core.timeout = options.timeout;
  core.connect_timeout = options.connect_timeout;
  core.access_rules = [flags] { return flags->Now(); };
  core.kernel_times = options.writeback_cache;
  core.forget_pages = std::move(forget_pages);
  core.forget_attributes = std::move(forget_attributes);
  core.waits_for_page = WaitsInKernel;
  core.after_kernel = std::move(after_kernel);
  core.kernel_path = std::move(kernel_path);
  core.takeover = takeover;
  core.file_io.takeover = takeover;
  core.file_io.sync_close = options.sync_close;
  core.file_io.write_back.bytes_max = options.dirty_bytes_max;
  // Root raises the kernel's read-ahead instead, which costs no copy and no memory of ours.
  core.file_io.read_ahead.ahead_bytes = geteuid() == 0 ? 0 : options.readahead_bytes;
  return core;
}

Status MayRing(const Mount::Options& options) {
  if (options.uring == Mount::Uring::kOff) return {ErrorCode::kInvalid, "not wanted"};
  // The kernel does not ask a successor for what lies in rings.
  if (options.state_fd >= 0) {
    return {ErrorCode::kInvalid, "a mount that another process may go on with takes /dev/fuse"};
  }
  return RingsOffered();
}

// As libfuse reads values of options: a comma in one would begin the next.
std::string EscapeOption(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == ',' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

std::string FuseOptions(const Mount::Options& options) {
  // The kernel checks permissions: nobody else is asked who opens a FIFO or connects to a socket.
  std::string text =
      "fsname=" + EscapeOption(options.fsname) + ",subtype=weirfs,default_permissions";
  if (options.allow_other) text += ",allow_other";
  if (options.read_only) text += ",ro";
  for (const std::string& option : options.fuse_options) text += "," + option;
  return text;
}

// For users other than root, who may only unmount through the helper.
void RunFusermount(const std::string& mountpoint) {
  const pid_t child = fork();
  if (child == 0) {
    execlp("fusermount3", "fusermount3", "-u", "-z", "-q", mountpoint.c_str(), nullptr);
    _exit(127);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

void Detach(const std::string& mountpoint) {
  if (geteuid() != 0) {
    RunFusermount(mountpoint);
  } else {
    umount2(mountpoint.c_str(), MNT_DETACH);
  }
}

}  // namespace

static_assert(KernelReactors::kMost <= ReactorNetworks::kMost, "each has connections of its own");

class Mount::Impl {
 public:
  Impl(net::Network& network, Clock& clock, const std::string& endpoint, std::string mountpoint,
       Options options, std::unique_ptr<TakeoverLog> takeover,
       std::unique_ptr<KernelReactors> reactors)
      : mountpoint_(std::move(mountpoint)),
        options_(std::move(options)),
        takeover_(std::move(takeover)),
        flags_(mountpoint_, WantedRules(options_)),
        reactors_(std::move(reactors)),
        networks_(NetworksOf(network)),
        core_(networks_, clock,
              CoreOptions(
                  endpoint, options_, takeover_.get(), &flags_, [this](InodeId id) { Forget(id); },
                  [this](InodeId id) { ForgetAttributes(id); },
                  [this](auto then) { filesystem_.barrier().After(std::move(then)); },
                  [this] { return PathNow(); })),
        awake_(options_.keep_awake ? AwakeProcessors::OfThisMachine(clock) : nullptr),
        filesystem_(core_, {options_.exclusive, options_.writeback_cache,
                            static_cast<uint32_t>(options_.readahead_bytes), awake_.get()}) {}

  ~Impl() {
    Stop();
    (void)Wait();
    EndThreads(Duration::zero());  // of one that has not begun to serve
  }

  Status Start() {
    WEIR_RETURN_IF_ERROR(ChooseWay());
    // What the kernel has of files that were open is asked to be dropped while the core opens.
    if (options_.device_fd >= 0) WEIR_RETURN_IF_ERROR(GoOn());
    WEIR_RETURN_IF_ERROR(core_.Open([this] {
      if (filesystem_.calls().AnswerKilled()) core_.files().DropAbandoned();
    }));
    core_.inodes().Pin(core_.mds().root());  // the kernel looks at it without having looked it up
    if (options_.before_mount) options_.before_mount();
    if (options_.device_fd < 0) WEIR_RETURN_IF_ERROR(MountIt());
    ShowFlags();
    filesystem_.kernel_cache().Start(session_, reactors_->first());
    filesystem_.kernel_attributes().Start(session_, reactors_->first());
    filesystem_.barrier().Start(*reactors_);
    handler_ = std::make_unique<RequestHandler>(
        session_,
        RequestHandler::Hooks{
            .on_init = [this](auto init) { OnInit(init); },
            .on_interrupt = [this](auto number) { filesystem_.calls().Interrupt(number); },
            .on_mark = [this](auto mark) { filesystem_.barrier().Marked(mark); },
            .on_request = [this] { filesystem_.core().Used(); },
        });
    if (options_.device_fd >= 0) {
      AskAgain(options_.device_fd);
      HandOn();
    }
    reactors_->Prepare(fuse_session_fd(session_), *handler_, HowToServe());
    WEIR_RETURN_IF_ERROR(PrepareRings());
    {
      const std::lock_guard lock(mutex_);
      serving_ = true;
    }
    reactors_->Start();
    if (options_.device_fd >= 0) met_kernel_ = true;  // it was told by a predecessor
    RaiseReadAhead(device_, kReadAheadKib);
    RaiseQueueLimits(device_, kKernelQueue);
    return Status::Ok();
  }

  void Stop() {
    std::unique_lock lock(mutex_);
    if (!serving_ || ended_ || std::exchange(stopping_, true)) return;
    lock.unlock();
    if (geteuid() != 0) {
      RunFusermount(mountpoint_);
    } else if (umount2(mountpoint_.c_str(), 0) != 0) {
      umount2(mountpoint_.c_str(), MNT_DETACH);  // files are open
    }
    lock.lock();
    // Whoever still has files open behind a lazy unmount gets errors from now on.
    if (!ended_changed_.wait_for(lock, kLazyUnmountGrace, [this] { return ended_; })) {
      AbortConnection(device_);
    }
  }

  Status HandOver(Duration wait) {
    if (takeover_ == nullptr) return {ErrorCode::kInvalid, "nobody could go on with this mount"};
    // Most of it while requests are still served.
    if (!core_.Settle(wait)) {
      return {ErrorCode::kBusy, "what is buffered could not be stored in time: see osdctl status"};
    }
    {
      std::lock_guard lock(mutex_);
      if (ended_ || stopping_) return {ErrorCode::kBusy, "it is being unmounted"};
      handing_over_ = true;
    }
    reactors_->Stop();
    AwaitAnswers();
    (void)core_.Settle(wait);
    return Status::Ok();
  }

  Counters counters() {
    std::lock_guard lock(mutex_);  // what we ask ends only after `ended_`
    Counters out;
    if (ended_) return out;
    const auto map = core_.mds().map();
    std::map<std::string, Counters::Class> classes;
    for (const auto& [id, load] : core_.objects().Loads()) {
      const auto entry = map->classes.find(id);
      const std::string name = entry == map->classes.end() ? "removed" : entry->second.spec.name;
      Counters::Class& total = classes[name];
      total.name = name;
      total.answered_bytes += load.answered_bytes;
      total.answered_requests += load.answered_requests;
      total.flying_bytes += load.flying_bytes;
      total.flying_requests += load.flying_requests;
      total.waiting_requests += load.waiting_requests;
    }
    for (auto& [name, total] : classes) out.classes.push_back(std::move(total));
    const ObjectIo::Counters objects = core_.objects().counters();
    out.sent = objects.sent;
    out.retried = objects.retried;
    out.checksum_errors = objects.checksum_errors;
    out.expired = objects.expired;
    out.dirty_bytes = core_.files().dirty_bytes();
    out.inodes = core_.inodes().size();
    out.kernel_requests = filesystem_.calls().outstanding();
    out.over_uring = reactors_->ringing();
    const RingQueues::Counters rings = reactors_->ring_counters();
    out.ring_requests = rings.requests;
    out.ring_entries = rings.entries;
    out.ring_bytes = rings.bytes;
    out.map_epoch = map->epoch.value;
    out.mds_connected = core_.mds().connected();
    return out;
  }

  Status Wait() {
    {
      std::unique_lock lock(mutex_);
      if (!serving_ && session_ == nullptr) return result_;
      ended_changed_.wait(lock, [this] { return ended_ || !serving_; });
      serving_ = false;
    }
    filesystem_.kernel_cache().Stop();
    filesystem_.kernel_attributes().Stop();
    filesystem_.barrier().Stop();
    if (!EndThreads(options_.unmount_timeout)) {
      result_ = Status(ErrorCode::kIo,
                       "unmounted " + mountpoint_ + " before all buffered data could be written");
    }
    if (session_ != nullptr) {
      fuse_session_unmount(session_);
      fuse_session_destroy(session_);
      session_ = nullptr;
    }
    return result_;
  }

 private:
  // What is left then waits for something, a lock say: the kernel asks the successor for it.
  void AwaitAnswers() {
    size_t before = 0;
    for (auto unchanged = Duration::zero(); unchanged < kAnswersAwaited; unchanged += kAnswerLook) {
      const size_t left = filesystem_.calls().outstanding();
      if (left == 0) return;
      if (std::exchange(before, left) != left) unchanged = Duration::zero();
      std::this_thread::sleep_for(kAnswerLook);
    }
  }

  // Called until the core has shut down, which is before the session ends.
  void Forget(InodeId inode) {
    fuse_session* session = notified_;
    if (session == nullptr) return;
    filesystem_.ForgetNames(inode);
    for (const fuse_ino_t number : filesystem_.ToNumbers(inode)) {
      fuse_lowlevel_notify_inval_inode(session, number, 0, 0);
    }
  }

  void ForgetAttributes(InodeId inode) {
    fuse_session* session = notified_;
    if (session == nullptr) return;
    for (const fuse_ino_t number : filesystem_.ToNumbers(inode)) {
      fuse_lowlevel_notify_inval_inode(session, number, -1, 0);
    }
  }

  // One connection to each server where another process may go on with the session, and within a
  // process, where messages are handed over.
  [[nodiscard]] ReactorNetworks NetworksOf(net::Network& network) const {
    if (options_.exclusive) return ReactorNetworks(network);
    if (takeover_ != nullptr) return ReactorNetworks(network, {&reactors_->first()});
    return ReactorNetworks(network, reactors_->all());
  }

  // False: data was lost. Connections first, which live on the reactors.
  bool EndThreads(Duration wait) {
    const bool stored = core_.Shutdown(wait);
    reactors_ = nullptr;
    return stored;
  }

  [[nodiscard]] KernelReactors::Serving HowToServe() {
    KernelReactors::Serving serving;
    // Where the disks are this process's own, its threads do the work of an OSD as well.
    serving.weight = options_.exclusive ? Inbox::Weight::kNormal : Inbox::Weight::kMost;
    serving.hurried = [this] { return core_.hurried(); };
    serving.on_end = [this](int error) { Ended(error); };
    return serving;
  }

  Status ChooseWay() {
    Status rings = MayRing(options_);
    if (rings.ok() && !reactors_->CanRing()) {
      rings = Status(ErrorCode::kNotSupported, "this process may not use io_uring");
    }
    wants_rings_ = rings.ok();
    if (!rings.ok() && options_.uring == Uring::kOn) {
      return {rings.code(), "-o uring=on: " + rings.message()};
    }
    return Status::Ok();
  }

  Status PrepareRings() {
    if (!wants_rings_) return Status::Ok();
    Status status = reactors_->PrepareRings(filesystem_.ring_requests(), RingBytesMax());
    if (status.ok()) {
      handler_->Want(kOverIoUring);
      return Status::Ok();
    }
    if (options_.uring == Uring::kOn) return status;
    WEIR_LOG_INFO("requests come by /dev/fuse: {}", status.message());
    wants_rings_ = false;
    return Status::Ok();
  }

  Status MakeSession() {
    operations_ = MakeOperations(options_.exclusive);
    std::string program = "weirfs";
    std::string flag = "-o";
    std::string text = FuseOptions(options_);
    char* argv[] = {program.data(), flag.data(), text.data(), nullptr};
    fuse_args args = FUSE_ARGS_INIT(3, argv);
    session_ = fuse_session_new(&args, &operations_, sizeof(operations_), &filesystem_);
    fuse_opt_free_args(&args);
    if (session_ == nullptr) {
      return {ErrorCode::kInvalid, "mount options are not understood: " + text};
    }
    return Status::Ok();
  }

  Status MountIt() {
    WEIR_RETURN_IF_ERROR(MakeSession());
    if (options_.replace && !DeviceOfMount(mountpoint_).empty()) Detach(mountpoint_);
    errno = 0;
    if (fuse_session_mount(session_, mountpoint_.c_str()) != 0) {
      const int error = errno == 0 ? EIO : errno;
      fuse_session_destroy(session_);
      session_ = nullptr;
      return Status::FromErrno(error, "cannot mount on " + mountpoint_);
    }
    WEIR_RETURN_IF_ERROR(CompleteInitReply(session_));
    notified_ = session_;
    return Status::Ok();
  }

  void ShowFlags() {
    const bool is_new = options_.device_fd < 0;
    const bool told = is_new ? SetAtimeFlags(mountpoint_, options_.noatime, options_.nodiratime,
                                             options_.strictatime)
                             : geteuid() == 0;  // as by the first process
    device_ = DeviceOfMount(mountpoint_);
    flags_.Mounted(device_, told);
  }

  // Instead of mounting: libfuse is told what the kernel told the first process.
  Status GoOn() {
    WEIR_RETURN_IF_ERROR(MakeSession());
    const std::string device = "/dev/fd/" + std::to_string(options_.device_fd);
    if (fuse_session_mount(session_, device.c_str()) != 0) {
      return {ErrorCode::kInvalid, "the kernel's end of " + mountpoint_ + " cannot be used"};
    }
    std::string init = takeover_->left().init;
    fuse_buf buffer{};
    buffer.mem = init.data();
    buffer.size = init.size();
    fuse_session_process_buf(session_, &buffer);  // its answer finds nobody, which libfuse allows
    notified_ = session_;
    return Status::Ok();
  }

  // Until the kernel has said what it can, that is open.
  [[nodiscard]] KernelPath PathNow() const {
    if (!met_kernel_) return KernelPath::kUnknown;
    return reactors_->ringing() ? KernelPath::kUring : KernelPath::kDevice;
  }

  void OnInit(std::span<const uint8_t> request) {
    if (wants_rings_ && (OfferedInitFlags(request) & kOverIoUring) != 0) {
      filesystem_.calls().MistrustInterrupts();
      reactors_->StartRings();
    }
    met_kernel_ = true;
    if (takeover_ == nullptr) return;
    if (!CanAskAgain(request)) {
      WEIR_LOG_WARN("this kernel is older than 6.9: the mount ends with its process");
      return;
    }
    takeover_->Init({request.begin(), request.end()});
    HandOn();
  }

  void HandOn() {
    if (options_.on_device) {
      options_.on_device(fuse_session_fd(session_), DeviceOfMount(mountpoint_));
    }
  }

  // On a reactor.
  void Ended(int code) {
    std::lock_guard lock(mutex_);
    if (handing_over_) return;    // the process ends without unmounting
    fuse_session_exit(session_);  // answers from now on find nobody, and libfuse says nothing
    // ENODEV is how an unmount looks from here; ECONNABORTED our own abort.
    if (code != ENODEV && code != ECONNABORTED && !stopping_) {
      result_ = Status::FromErrno(code, "serving " + mountpoint_);
    }
    ended_ = true;
    ended_changed_.notify_all();
  }

  const std::string mountpoint_;
  const Options options_;
  const std::unique_ptr<TakeoverLog> takeover_;  // null: no other process can go on
  MountFlags flags_;
  std::unique_ptr<KernelReactors> reactors_;  // ended before anything that their tasks use goes
  const ReactorNetworks networks_;
  Core core_;
  const std::unique_ptr<AwakeProcessors> awake_;  // null: they sleep as they like
  Filesystem filesystem_;
  fuse_lowlevel_ops operations_{};
  fuse_session* session_ = nullptr;
  std::atomic<fuse_session*> notified_{nullptr};
  std::string device_;
  std::unique_ptr<RequestHandler> handler_;
  std::atomic<bool> met_kernel_{false};
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool wants_rings_ = false;
  bool serving_ = false;
  bool ended_ = false;
  bool stopping_ = false;
  bool handing_over_ = false;
  Status result_;
};

Mount::Mount(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Mount::~Mount() = default;

Result<std::unique_ptr<Mount>> Mount::Start(net::Network& network, Clock& clock,
                                            const std::string& mds_endpoint,
                                            const std::string& mountpoint, Options options) {
  std::unique_ptr<TakeoverLog> takeover;
  if (options.state_fd >= 0) {
    WEIR_ASSIGN_OR_RETURN(takeover, TakeoverLog::Open(options.state_fd, RandomSeed()));
  }
  std::string place = mountpoint;
  if (options.device_fd < 0) {  // else a look at it would wait for us
    char resolved[PATH_MAX];
    if (realpath(mountpoint.c_str(), resolved) == nullptr) {
      return Status::FromErrno(errno, "mount point " + mountpoint);
    }
    place = resolved;
  }
  WEIR_ASSIGN_OR_RETURN(auto reactors, KernelReactors::Create({.count = options.reactors,
                                                               .first = options.first_reactor,
                                                               .rings = MayRing(options).ok()}));
  auto impl = std::make_unique<Impl>(network, clock, mds_endpoint, place, std::move(options),
                                     std::move(takeover), std::move(reactors));
  WEIR_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Mount>(new Mount(std::move(impl)));
}

Status Mount::Wait() {
  return impl_->Wait();
}

Status Mount::HandOver(Duration wait) {
  return impl_->HandOver(wait);
}

void Mount::Stop() {
  impl_->Stop();
}

Mount::Counters Mount::counters() const {
  return impl_->counters();
}

}  // namespace weir::client
