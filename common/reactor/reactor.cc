#include "common/reactor/reactor.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/short_turns.h"
#include "common/reactor/poller.h"
#include "common/reactor/post_here.h"

namespace weir {
namespace {

// What a turn spends on what takes long (copies, checksums) before it looks for what has come.
constexpr Duration kContinuedTurn = std::chrono::microseconds(50);

thread_local Reactor* current = nullptr;

Result<std::optional<Reactor::Backend>> BackendOfEnvironment() {
  const char* const value = std::getenv("WEIR_REACTOR");
  if (value == nullptr || *value == '\0') return std::optional<Reactor::Backend>();
  if (std::string_view(value) == "uring") return std::optional(Reactor::Backend::kUring);
  if (std::string_view(value) == "epoll") return std::optional(Reactor::Backend::kEpoll);
  return {ErrorCode::kInvalid, "WEIR_REACTOR=" + std::string(value) + ": uring or epoll"};
}

// Of the calling thread.
Duration ProcessorTime() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Result<std::unique_ptr<Reactor>> Reactor::Create(const Options& options) {
  std::optional<Backend> backend = options.backend;
  if (!backend) {
    WEIR_ASSIGN_OR_RETURN(backend, BackendOfEnvironment());
  }
  if (backend != Backend::kEpoll) {
    auto poller = MakeUringPoller(options.large_entries);
    if (poller.ok()) {
      return std::unique_ptr<Reactor>(
          new Reactor(std::move(*poller), Backend::kUring, options.name));
    }
    if (backend || poller.code() != ErrorCode::kNotSupported) return poller.status();
  }
  WEIR_ASSIGN_OR_RETURN(auto poller, MakeEpollPoller());
  return std::unique_ptr<Reactor>(new Reactor(std::move(poller), Backend::kEpoll, options.name));
}

Reactor::Reactor(std::unique_ptr<Poller> poller, Backend backend, std::string name)
    : poller_(std::move(poller)), backend_(backend), name_(std::move(name)) {}

Reactor::~Reactor() {
  Stop();
}

void Reactor::Start() {
  WEIR_CHECK(!thread_.joinable(), "a reactor is started once");
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), name_.substr(0, 15).c_str());
}

void Reactor::Stop() {
  if (!thread_.joinable()) return;
  WEIR_CHECK(!InLoop(), "a reactor is stopped by its own task");
  stopping_ = true;
  Wake();
  thread_.join();
  std::vector<Task> dropped;  // destroyed without the lock: a task may own what posts when it dies
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(posted_);
  }
}

bool Reactor::InLoop() const {
  return current == this;
}

void Reactor::Wake() {
  if (sleeping_.exchange(false)) poller_->Wake();
}

// Dekker: the poster stores its task, then loads sleeping_; the reactor stores sleeping_, then
// looks for tasks (MustNotSleep). Both are seq_cst, so one of them sees the other.
void Reactor::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    posted_.push_back(std::move(task));
  }
  if (!InLoop()) Wake();
}

void Reactor::AtTurnEnd(Task task) {
  turn_ends_.push_back(std::move(task));
}

bool PostHere(Loop::Task task) {
  if (current == nullptr) return false;
  current->Post(std::move(task));
  return true;
}

LoopTimer Reactor::RunAt(TimePoint when, Task task) {
  return timers_.Add(when, std::move(task));
}

void Reactor::CancelTimer(LoopTimer timer) {
  timers_.Cancel(timer);
}

void Reactor::Watch(int fd, Watcher* watcher) {
  poller_->Watch(fd, watcher);
}

void Reactor::WatchShared(int fd, Watcher* watcher) {
  poller_->WatchShared(fd, watcher);
}

void Reactor::Unwatch(Watcher* watcher) {
  poller_->Unwatch(watcher);
  std::erase(continued_, watcher);
}

void Reactor::WaitWritable(Watcher* watcher) {
  poller_->WaitWritable(watcher);
}

void Reactor::Continue(Watcher* watcher) {
  if (std::find(continued_.begin(), continued_.end(), watcher) == continued_.end()) {
    continued_.push_back(watcher);
  }
}

void Reactor::DoNotContinue(Watcher* watcher) {
  std::erase(continued_, watcher);
}

void Reactor::Submit(DiskRequest* request) {
  poller_->Submit(request);
}

io_uring* Reactor::ring() const {
  return poller_->ring();
}

void Reactor::Run() {
  current = this;
  poller_->Enter();
  while (!stopping_.load(std::memory_order_relaxed)) {
    RunPosted();
    timers_.Run(SystemClock::Get().Now());
    RunTurnEnds();
    RunContinued();
    RunTurnEnds();
    if (MustNotSleep()) {
      poller_->Wait(TimePoint());
    } else {
      Wait();
    }
    poller_->Run();
  }
  current = nullptr;
  if (looked_ >= std::chrono::milliseconds(1)) {
    using std::chrono::milliseconds;
    WEIR_LOG_DEBUG("{}: polled for {} ms of the {} ms that it was idle", name_,
                   std::chrono::duration_cast<milliseconds>(looked_).count(),
                   std::chrono::duration_cast<milliseconds>(waited_).count());
  }
}

void Reactor::Wait() {
  waits_.fetch_add(1, std::memory_order_relaxed);
  const TimePoint before = SystemClock::Get().Now();
  const TimePoint next = timers_.Next();
  // Nobody takes the processor from a thread that runs ahead: it would look while others wait.
  const Duration budget = RunsAheadOfTurns() ? Duration(0) : looking_.Budget();
  if (budget == Duration(0) || !Look(std::min(before + budget, next))) {
    sleeping_ = true;
    poller_->Wait(MustNotSleep() ? TimePoint() : next);
    sleeping_ = false;
  }
  const Duration wait = SystemClock::Get().Now() - before;
  looking_.Waited(wait);
  waited_ += wait;
}

// Whether something has come.
bool Reactor::Look(TimePoint until) {
  const TimePoint begin = SystemClock::Get().Now();
  const Duration ran = ProcessorTime();
  TimePoint now = begin;
  bool found = poller_->Found();
  while (!found && now < until) {
    poller_->Wait(TimePoint());
    found = poller_->Found() || MustNotSleep();
    now = SystemClock::Get().Now();
  }
  looking_.Looked(now - begin, ProcessorTime() - ran);
  looked_ += now - begin;
  return found;
}

bool Reactor::MustNotSleep() {
  if (stopping_ || !continued_.empty() || !turn_ends_.empty()) return true;
  const std::lock_guard lock(mutex_);
  return !posted_.empty();
}

void Reactor::RunPosted() {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(posted_);
  }
  for (Task& task : running_) task();
  running_.clear();
}

// Each at most once: what it goes on with comes after what else has come meanwhile.
void Reactor::RunContinued() {
  if (continued_.empty()) return;
  const TimePoint until = SystemClock::Get().Now() + kContinuedTurn;
  for (size_t left = continued_.size(); left > 0 && !continued_.empty(); --left) {
    Watcher* const watcher = continued_.front();
    continued_.pop_front();
    watcher->OnContinue();
    if (SystemClock::Get().Now() >= until) return;
  }
}

// Those that they add run in the next turn, which comes at once.
void Reactor::RunTurnEnds() {
  ending_.swap(turn_ends_);
  for (Task& end : ending_) end();
  ending_.clear();
}

}  // namespace weir
