#include <linux/aio_abi.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/reactor/poller.h"

namespace weir {
namespace {

constexpr int kEventsAtOnce = 64;
constexpr size_t kSubmittedAtOnce = 32;
constexpr unsigned kDiskRequestsUnderWay = 512;

class EpollPoller final : public Poller {
 public:
  EpollPoller()
      : epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        disk_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~EpollPoller() override {
    if (context_ != 0) syscall(SYS_io_destroy, context_);
    for (const int fd : {epoll_, wake_fd_, disk_fd_}) {
      if (fd >= 0) close(fd);
    }
    for (auto& [watcher, watched] : watched_) delete watched;
    for (Watched* watched : ended_) delete watched;
  }
  EpollPoller(const EpollPoller&) = delete;
  EpollPoller& operator=(const EpollPoller&) = delete;

  Status Open() {
    if (epoll_ < 0 || wake_fd_ < 0 || disk_fd_ < 0) {
      return Status::FromErrno(errno, "no descriptor for an event loop");
    }
    if (syscall(SYS_io_setup, kDiskRequestsUnderWay, &context_) != 0) {
      return Status::FromErrno(errno, "no AIO context for an event loop (fs.aio-max-nr)");
    }
    for (const int fd : {wake_fd_, disk_fd_}) {
      epoll_event event{};
      event.events = EPOLLIN | EPOLLET;
      event.data.ptr = nullptr;
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
        return Status::FromErrno(errno, "no event loop");
      }
    }
    return {};
  }

  void Enter() override {}
  void Watch(int fd, Watcher* watcher) override {
    SetEvents(EPOLL_CTL_ADD, *Add(fd, watcher), EPOLLRDHUP | EPOLLET);
  }
  void WatchShared(int fd, Watcher* watcher) override {
    SetEvents(EPOLL_CTL_ADD, *Add(fd, watcher), EPOLLEXCLUSIVE);
  }
  void Unwatch(Watcher* watcher) override {
    const auto it = watched_.find(watcher);
    WEIR_CHECK(it != watched_.end(), "a watcher that nobody knows");
    Watched* const watched = it->second;
    watched_.erase(it);
    watched->watcher = nullptr;
    (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, watched->fd, nullptr);
    ended_.push_back(watched);  // events that were taken may name it
  }
  void WaitWritable(Watcher* watcher) override {
    Watched* const watched = watched_.at(watcher);
    watched->writing = true;
    SetEvents(EPOLL_CTL_MOD, *watched, EPOLLOUT | EPOLLRDHUP | EPOLLET);
  }

  void Submit(DiskRequest* request) override {
    waiting_.push_back(request);
    SubmitWaiting();
  }

  void Wait(TimePoint until) override {
    SubmitWaiting();
    const bool at_once = !refused_.empty() || std::exchange(disk_has_more_, false);
    const Duration wait =
        at_once ? Duration(0) : std::max(until - SystemClock::Get().Now(), Duration(0));
    const timespec timeout{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    const bool for_ever = !at_once && until == TimePoint::Max();
    ready_ =
        epoll_pwait2(epoll_, events_.data(), kEventsAtOnce, for_ever ? nullptr : &timeout, nullptr);
  }
  [[nodiscard]] bool Found() override { return ready_ > 0 || disk_has_more_ || !refused_.empty(); }
  void Run() override {
    for (int i = 0; i < ready_; ++i) Take(events_[i]);
    ready_ = 0;
    ReapDisk();
    for (Watched* watched : ended_) delete watched;
    ended_.clear();
  }
  void Wake() override {
    const uint64_t one = 1;
    (void)!write(wake_fd_, &one, sizeof(one));
  }

 private:
  struct Watched {
    int fd;
    Watcher* watcher;  // null: not watched any more
    bool writing = false;
  };

  Watched* Add(int fd, Watcher* watcher) {
    auto* watched = new Watched{fd, watcher};
    WEIR_CHECK(watched_.emplace(watcher, watched).second, "a watcher watches one descriptor");
    return watched;
  }
  void SetEvents(int how, Watched& watched, uint32_t more) const {
    epoll_event event{};
    event.events = EPOLLIN | more;
    event.data.ptr = &watched;
    WEIR_CHECK(epoll_ctl(epoll_, how, watched.fd, &event) == 0, "epoll takes no descriptor");
  }
  void Take(const epoll_event& event) {
    if (event.data.ptr == nullptr) return;  // the mailbox, or a disk: looked at in any case
    auto* const watched = static_cast<Watched*>(event.data.ptr);
    if (watched->watcher != nullptr && watched->writing &&
        (event.events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
      watched->writing = false;
      SetEvents(EPOLL_CTL_MOD, *watched, EPOLLRDHUP | EPOLLET);
      watched->watcher->OnWritable();
    }
    if (watched->watcher != nullptr && (event.events & ~EPOLLOUT) != 0) {
      watched->watcher->OnReadable();
    }
  }

  // As many as the kernel takes; the rest when some of those have ended.
  void SubmitWaiting() {
    while (!waiting_.empty()) {
      std::array<iocb, kSubmittedAtOnce> blocks;
      std::array<iocb*, kSubmittedAtOnce> pointers;
      const size_t count = std::min(waiting_.size(), blocks.size());
      for (size_t i = 0; i < count; ++i) {
        blocks[i] = BlockOf(*waiting_[i]);
        pointers[i] = &blocks[i];
      }
      const long taken =
          syscall(SYS_io_submit, context_, static_cast<long>(count), pointers.data());
      if (taken > 0) {
        waiting_.erase(waiting_.begin(), waiting_.begin() + taken);
        under_way_ += static_cast<size_t>(taken);
      } else if (errno == EAGAIN && under_way_ > 0) {
        return;
      } else if (errno != EAGAIN && errno != EINTR) {  // the first one cannot be
        refused_.emplace_back(waiting_.front(), -errno);
        waiting_.pop_front();
      }
    }
  }
  [[nodiscard]] iocb BlockOf(const DiskRequest& request) const {
    iocb block{};
    block.aio_data = reinterpret_cast<uint64_t>(&request);
    block.aio_fildes = static_cast<uint32_t>(request.fd);
    block.aio_flags = IOCB_FLAG_RESFD;
    block.aio_resfd = static_cast<uint32_t>(disk_fd_);
    switch (request.kind) {
      case DiskRequest::Kind::kRead:
        block.aio_lio_opcode = IOCB_CMD_PREAD;
        break;
      case DiskRequest::Kind::kWrite:
        block.aio_lio_opcode = IOCB_CMD_PWRITE;
        break;
      case DiskRequest::Kind::kSync:
        block.aio_lio_opcode = IOCB_CMD_FDSYNC;
        return block;
    }
    block.aio_buf = reinterpret_cast<uint64_t>(request.data);
    block.aio_nbytes = request.length;
    block.aio_offset = static_cast<int64_t>(request.offset);
    return block;
  }
  void ReapDisk() {
    for (auto& [request, error] : std::exchange(refused_, {})) request->Done(error);
    if (under_way_ == 0) return;
    std::array<io_event, kEventsAtOnce> events;
    timespec at_once{};
    const long count =
        syscall(SYS_io_getevents, context_, 0L, kEventsAtOnce, events.data(), &at_once);
    if (count <= 0) return;
    under_way_ -= static_cast<size_t>(count);
    disk_has_more_ = count == kEventsAtOnce;
    for (long i = 0; i < count; ++i) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel carries it as a number
      reinterpret_cast<DiskRequest*>(events[i].data)->Done(events[i].res);
    }
  }

  const int epoll_, wake_fd_, disk_fd_;
  aio_context_t context_ = 0;
  std::array<epoll_event, kEventsAtOnce> events_{};
  int ready_ = 0;                     // of events_
  std::deque<DiskRequest*> waiting_;  // until the next Wait
  std::vector<std::pair<DiskRequest*, int64_t>> refused_;
  size_t under_way_ = 0;
  bool disk_has_more_ = false;  // the eventfd says nothing of those that were not taken
  std::unordered_map<Watcher*, Watched*> watched_;
  std::vector<Watched*> ended_;
};

}  // namespace

Result<std::unique_ptr<Poller>> MakeEpollPoller() {
  auto poller = std::make_unique<EpollPoller>();
  WEIR_RETURN_IF_ERROR(poller->Open());
  return std::unique_ptr<Poller>(std::move(poller));
}

}  // namespace weir
