#include "common/net/io_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/net/transport.h"

namespace weir::net {
namespace {

// Tasks that one lent thread runs for others before the own thread has to go on.
constexpr int kLentTasks = 16;
// What AnswerHere runs before it posts what is left.
constexpr int kRounds = 8;
thread_local bool lends = false;
thread_local const IoThread* own = nullptr;  // the loop whose thread this is

struct Later {
  std::shared_ptr<void> owner;
  IoThread* loop;
  IoThread::Task task;
};
thread_local std::vector<Later>* later = nullptr;
thread_local std::function<void()> afterwards;

}  // namespace

AnswerHere::AnswerHere() : outermost_(later == nullptr && !lends && own == nullptr) {
  static thread_local std::vector<Later> tasks;  // kept for its capacity
  if (outermost_) later = &tasks;
}

AnswerHere::~AnswerHere() {
  if (!outermost_) return;
  std::vector<Later> now;
  for (int round = 0; !later->empty(); ++round) {
    now.swap(*later);
    for (Later& one : now) {
      if (round < kRounds) {
        one.loop->RunOrPost(std::move(one.task), one.owner);
      } else {
        one.loop->Post(std::move(one.task));
      }
    }
    now.clear();
  }
  later = nullptr;
  if (afterwards) std::exchange(afterwards, nullptr)();
}

bool AnswerHere::Afterwards(std::function<void()>& work) {
  if (later == nullptr || afterwards) return false;
  afterwards = std::move(work);
  return true;
}

bool IoThread::InThread() const {
  return own == this;
}

IoThread::IoThread() : wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  WEIR_CHECK(wake_fd_ >= 0, "no file descriptor left for an eventfd; raise ulimit -n");
}

IoThread::~IoThread() {
  Stop();
  close(wake_fd_);
}

void IoThread::Start() {
  // The mutex publishes thread_ to tasks that ask InThread().
  const std::lock_guard lock(mutex_);
  started_ = true;
  thread_ = std::thread([this] { Run(); });
}

void IoThread::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    WakeLocked();
  }
  if (thread_.joinable()) {
    WEIR_CHECK(!InThread(), "a transport is destroyed from its own callback");
    thread_.join();
  }
  { const std::lock_guard lent(running_mutex_); }  // the task on a lent thread
  // Destroyed outside the lock: a task may own what posts again when it dies.
  std::vector<Task> dropped;
  Task dropped_timer;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(tasks_);
    std::swap(dropped_timer, timer_);
  }
}

void IoThread::WakeLocked() {
  if (!waiting_) return;
  waiting_ = false;
  const uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof(one));
}

void IoThread::Post(Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  tasks_.push_back(std::move(task));
  if (!lent_) WakeLocked();
}

void IoThread::RunOrPost(Task task, std::shared_ptr<void> owner) {
  if (lends && later != nullptr && owner != nullptr) {
    later->push_back({std::move(owner), this, std::move(task)});
  } else if (lends || InThread() || !LendTo(task)) {
    Post(std::move(task));
  }
}

bool IoThread::LendTo(Task& task) {
  const std::unique_lock running(running_mutex_, std::try_to_lock);
  if (!running.owns_lock()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || !started_ || !tasks_.empty()) return false;
    lent_ = true;
  }
  lends = true;
  task();
  std::vector<Task> more;
  for (int left = kLentTasks;; --left) {
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty() || left == 0 || stopping_) {
        lent_ = false;
        if (!tasks_.empty()) WakeLocked();
        break;
      }
      more.swap(tasks_);
    }
    for (Task& one : more) one();
    more.clear();
  }
  lends = false;
  return true;
}

void IoThread::RunAfter(Duration delay, Task task) {
  const TimePoint now = SystemClock::Get().Now();
  const TimePoint at =
      delay > TimePoint::Max() - now ? TimePoint::Max() : now + std::max(delay, Duration(0));
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  const bool sooner = at < timer_at_;
  timer_at_ = at;
  std::swap(timer_, task);
  if (sooner) WakeLocked();
}

void IoThread::Run() {
  own = this;
  { const std::lock_guard lock(mutex_); }
  for (;;) {
    bool worked;
    {
      const std::lock_guard running(running_mutex_);
      worked = RunTasks();
      worked |= RunTimer();
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if (!worked) Wait();
  }
}

bool IoThread::RunTasks() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.empty()) return false;
    running_.swap(tasks_);
  }
  for (Task& task : running_) task();
  running_.clear();
  return true;
}

bool IoThread::RunTimer() {
  Task task;
  {
    const std::lock_guard lock(mutex_);
    if (timer_at_ == TimePoint::Max() || SystemClock::Get().Now() < timer_at_) return false;
    timer_at_ = TimePoint::Max();
    std::swap(task, timer_);
  }
  if (task) task();
  return true;
}

void IoThread::Wait() {
  TimePoint until;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || !tasks_.empty()) return;
    waiting_ = true;
    until = timer_at_;
  }
  pollfd woken{wake_fd_, POLLIN, 0};
  timespec timeout{};
  if (until != TimePoint::Max()) {
    const int64_t ns = std::max<int64_t>((until - SystemClock::Get().Now()).count(), 0);
    timeout = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  ppoll(&woken, 1, until == TimePoint::Max() ? nullptr : &timeout, nullptr);
  {
    const std::lock_guard lock(mutex_);
    waiting_ = false;
  }
  uint64_t count = 0;
  if (woken.revents != 0) (void)!read(wake_fd_, &count, sizeof(count));
}

}  // namespace weir::net
