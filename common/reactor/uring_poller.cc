#include <liburing.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <unordered_map>

#include "common/base/check.h"
#include "common/reactor/poller.h"

namespace weir {
namespace {

constexpr unsigned kEntries = 512;
constexpr unsigned kCompletions = 4096;
constexpr unsigned kTakenAtOnce = 64;

// User data of an entry: a pointer, and what it points to in its lowest bits.
enum Tag : uint64_t { kDisk = 0, kReadable = 1, kWritable = 2, kOther = 3, kNobody = 4 };
constexpr uint64_t kTagMask = 7;

template <typename T>
T* PointerOf(uint64_t data) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel carries it as a number
  return reinterpret_cast<T*>(data & ~kTagMask);
}

class UringPoller final : public Poller {
 public:
  UringPoller() : wake_fd_(eventfd(0, EFD_CLOEXEC)) {}
  ~UringPoller() override {
    if (ring_open_) io_uring_queue_exit(&ring_);
    if (wake_fd_ >= 0) close(wake_fd_);
    for (auto& [watcher, watched] : watched_) delete watched;
    for (Watched* watched : ended_) delete watched;
  }
  UringPoller(const UringPoller&) = delete;
  UringPoller& operator=(const UringPoller&) = delete;

  Status Open(bool large_entries) {
    if (wake_fd_ < 0) return Status::FromErrno(errno, "no descriptor for an event loop");
    // The submitting thread is the waiting one, so that a completion interrupts nobody
    // (DEFER_TASKRUN, Linux 6.1); older kernels do without.
    const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                              IORING_SETUP_COOP_TASKRUN};
    int error = 0;
    for (const unsigned way : flags) {
      io_uring_params params{};
      params.flags = way | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE |
                     (large_entries ? IORING_SETUP_SQE128 : 0U);
      params.cq_entries = kCompletions;
      error = io_uring_queue_init_params(kEntries, &ring_, &params);
      deferred_ = (way & IORING_SETUP_DEFER_TASKRUN) != 0;
      if (error != -EINVAL) break;
    }
    if (error < 0) {
      return {ErrorCode::kNotSupported,
              "io_uring: " + Status::FromErrno(-error, "setup").message()};
    }
    ring_open_ = true;
    return {};
  }

  void Enter() override {
    // liburing 2.3 declares io_uring_enable_rings and does not export it.
    const long enabled =
        syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
    WEIR_CHECK(enabled == 0, "io_uring cannot be enabled");
    ArmWake();
  }

  void Watch(int fd, Watcher* watcher) override { Add(fd, watcher, false); }
  void WatchShared(int fd, Watcher* watcher) override { Add(fd, watcher, true); }
  void Unwatch(Watcher* watcher) override {
    const auto it = watched_.find(watcher);
    WEIR_CHECK(it != watched_.end(), "a watcher that nobody knows");
    Watched* const watched = it->second;
    watched_.erase(it);
    watched->watcher = nullptr;
    ended_.push_back(watched);
    if (watched->reading) CancelPoll(TagOf(watched, kReadable));
    if (watched->writing) CancelPoll(TagOf(watched, kWritable));
    // The requests hold the file open, and with it a socket's peer: they end now, not with the
    // turn.
    io_uring_submit(&ring_);
  }
  void WaitWritable(Watcher* watcher) override {
    Watched* const watched = watched_.at(watcher);
    if (watched->writing) return;
    watched->writing = true;
    io_uring_sqe* const sqe = NextEntry();
    io_uring_prep_poll_add(sqe, watched->fd, POLLOUT);
    sqe->user_data = TagOf(watched, kWritable);
  }

  void Submit(DiskRequest* request) override {
    io_uring_sqe* const sqe = NextEntry();
    switch (request->kind) {
      case DiskRequest::Kind::kRead:
        io_uring_prep_read(sqe, request->fd, request->data, request->length, request->offset);
        break;
      case DiskRequest::Kind::kWrite:
        io_uring_prep_write(sqe, request->fd, request->data, request->length, request->offset);
        break;
      case DiskRequest::Kind::kSync:
        io_uring_prep_fsync(sqe, request->fd, IORING_FSYNC_DATASYNC);
        break;
    }
    sqe->user_data = reinterpret_cast<uint64_t>(request) | kDisk;
    // One system call each: with one a turn, 16 readers got 35,500 requests/s, not 43,200, since
    // the disk was idle while the loop worked.
    io_uring_submit(&ring_);
  }

  void Wait(TimePoint until) override {
    const Duration wait = until - SystemClock::Get().Now();
    if (wait.count() <= 0 || io_uring_cq_ready(&ring_) > 0) return SubmitAndTake();
    __kernel_timespec timeout{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    io_uring_cqe* first = nullptr;
    (void)io_uring_submit_and_wait_timeout(&ring_, &first, 1,
                                           until == TimePoint::Max() ? nullptr : &timeout, nullptr);
  }
  [[nodiscard]] bool Found() override { return io_uring_cq_ready(&ring_) > 0; }
  void Run() override {
    Reap();
    FreeEnded();
  }
  void Wake() override {
    const uint64_t one = 1;
    (void)!write(wake_fd_, &one, sizeof(one));
  }
  [[nodiscard]] io_uring* ring() override { return &ring_; }

 private:
  struct Watched {
    int fd;
    Watcher* watcher;      // null: not watched any more, waits for its requests to end
    bool shared;           // WatchShared: one poll at a time, which wakes one of its kind
    bool reading = false;  // a poll is under way
    bool writing = false;
  };
  static uint64_t TagOf(Watched* watched, Tag tag) {
    return reinterpret_cast<uint64_t>(watched) | tag;
  }

  io_uring_sqe* NextEntry() {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    while (sqe == nullptr) {
      io_uring_submit(&ring_);
      sqe = io_uring_get_sqe(&ring_);
    }
    return sqe;
  }
  void Add(int fd, Watcher* watcher, bool shared) {
    auto* watched = new Watched{fd, watcher, shared};
    WEIR_CHECK(watched_.emplace(watcher, watched).second, "a watcher watches one descriptor");
    ArmReadable(watched);
  }
  void ArmReadable(Watched* watched) {
    watched->reading = true;
    io_uring_sqe* const sqe = NextEntry();
    if (watched->shared) {
      io_uring_prep_poll_add(sqe, watched->fd, POLLIN | EPOLLEXCLUSIVE);
    } else {
      io_uring_prep_poll_multishot(sqe, watched->fd, POLLIN | POLLRDHUP);
    }
    sqe->user_data = TagOf(watched, kReadable);
  }
  void CancelPoll(uint64_t tag) {
    io_uring_sqe* const sqe = NextEntry();
    io_uring_prep_poll_remove(sqe, tag);
    sqe->user_data = kNobody;
  }
  void ArmWake() {
    io_uring_sqe* const sqe = NextEntry();
    io_uring_prep_read(sqe, wake_fd_, &woken_, sizeof(woken_), 0);
    sqe->user_data = kNobody | kWokenBit;
  }

  void SubmitAndTake() {
    if (deferred_) {
      (void)io_uring_submit_and_get_events(&ring_);
    } else if (io_uring_sq_ready(&ring_) > 0) {
      (void)io_uring_submit(&ring_);
    }
  }

  // What comes meanwhile has its turn next time, so that timers and tasks have theirs.
  void Reap() {
    std::array<io_uring_cqe*, kTakenAtOnce> taken;
    unsigned left = io_uring_cq_ready(&ring_);
    while (left > 0) {
      const unsigned count =
          io_uring_peek_batch_cqe(&ring_, taken.data(), std::min(left, kTakenAtOnce));
      if (count == 0) return;
      std::array<io_uring_cqe, kTakenAtOnce> copies;
      for (unsigned i = 0; i < count; ++i) copies[i] = *taken[i];
      io_uring_cq_advance(&ring_, count);
      for (unsigned i = 0; i < count; ++i) End(copies[i]);
      left -= count;
    }
  }
  void End(const io_uring_cqe& cqe) {
    switch (cqe.user_data & kTagMask) {
      case kDisk:
        return PointerOf<DiskRequest>(cqe.user_data)->Done(cqe.res);
      case kReadable:
        return EndReadable(PointerOf<Watched>(cqe.user_data), cqe);
      case kWritable: {
        auto* const watched = PointerOf<Watched>(cqe.user_data);
        watched->writing = false;
        if (watched->watcher != nullptr) watched->watcher->OnWritable();
        return;
      }
      case kOther:
        return PointerOf<RingCompletion>(cqe.user_data)->Complete(cqe.res, cqe.flags);
      default:
        if ((cqe.user_data & kWokenBit) != 0) ArmWake();
    }
  }
  void EndReadable(Watched* watched, const io_uring_cqe& cqe) {
    const bool more = (cqe.flags & IORING_CQE_F_MORE) != 0;
    if (!more) watched->reading = false;
    if (watched->watcher == nullptr) return;
    if (!more && !watched->shared) ArmReadable(watched);  // submitted after the callback
    watched->watcher->OnReadable();
    // Not before the callback, which may have unwatched: a poll that is cancelled may first wait
    // again and take a wake that is another's, and this one's wake has brought the callback here.
    // It stays allocated until FreeEnded.
    if (watched->shared && watched->watcher != nullptr) ArmReadable(watched);
  }
  void FreeEnded() {
    std::erase_if(ended_, [](Watched* watched) {
      if (watched->reading || watched->writing) return false;
      delete watched;
      return true;
    });
  }

  static constexpr uint64_t kWokenBit = 8;

  const int wake_fd_;
  uint64_t woken_ = 0;
  io_uring ring_{};
  bool ring_open_ = false;
  bool deferred_ = false;
  std::unordered_map<Watcher*, Watched*> watched_;
  std::vector<Watched*> ended_;
};

}  // namespace

uint64_t Reactor::TagOf(RingCompletion* completion) {
  return reinterpret_cast<uint64_t>(completion) | kOther;
}

Result<std::unique_ptr<Poller>> MakeUringPoller(bool large_entries) {
  auto poller = std::make_unique<UringPoller>();
  WEIR_RETURN_IF_ERROR(poller->Open(large_entries));
  return std::unique_ptr<Poller>(std::move(poller));
}

}  // namespace weir
