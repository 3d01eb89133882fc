#include "client/vfs/lease_keeper.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unordered_set>
#include <utility>

namespace weir::client {
namespace {
constexpr size_t kMostForFiles = 4;
constexpr size_t kMostForNames = 2;
constexpr auto kPageWaitLook = std::chrono::microseconds(100);
constexpr Duration kUntilLeftoversGo = std::chrono::seconds(1);
}  // namespace

class LeaseKeeper::KernelWrites {
 public:
  void Begin(InodeId inode) {
    const std::lock_guard lock(mutex_);
    ++under_way_[inode];
  }
  void End(InodeId inode) {
    const std::lock_guard lock(mutex_);
    const auto found = under_way_.find(inode);
    if (--found->second == 0) under_way_.erase(found);
  }
  bool Any(InodeId inode) {
    const std::lock_guard lock(mutex_);
    return under_way_.contains(inode);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<InodeId, uint32_t> under_way_;
};

LeaseKeeper::LeaseKeeper(FileLeases& leases, InodeTable& inodes, Hooks hooks)
    : leases_(leases),
      inodes_(inodes),
      hooks_(std::move(hooks)),
      kernel_writes_(std::make_shared<KernelWrites>()),
      files_(kMostForFiles),
      directories_(kMostForNames) {}

LeaseKeeper::~LeaseKeeper() {
  Stop();
}

void LeaseKeeper::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  files_.grew.notify_all();
  directories_.grew.notify_all();
  hastened_.notify_all();
  for (std::thread& thread : threads_) thread.join();  // none is added any more
  threads_.clear();
}

void LeaseKeeper::Recalled(uint64_t seq, const std::vector<InodeId>& recalled) {
  const uint64_t epoch = leases_.epoch();
  std::vector<InodeId> unknown;
  for (const InodeId id : recalled) {
    const InodePtr inode = inodes_.Find(id);
    if (inode == nullptr) {
      unknown.push_back(id);
      continue;
    }
    // What a write without a lease has left to report is reported before that is answered.
    const bool left = inode->has_unreported() && !kernel_writes_->Any(id);
    Demand(inode, leases_.Revoke(inode) || left, epoch, seq);
  }
  if (!unknown.empty()) hooks_.yield(epoch, seq, unknown, [] {});
}

void LeaseKeeper::Lost(const std::vector<InodeId>& written, const std::vector<InodeId>& open) {
  for (const InodeId id : written) {
    if (const InodePtr inode = inodes_.Find(id)) Demand(inode, true, 0, 0);
  }
  const std::unordered_set<InodeId> flushed(written.begin(), written.end());
  for (const InodeId id : open) {
    const InodePtr inode = inodes_.Find(id);
    if (inode == nullptr) continue;
    inode->Distrust();
    if (!flushed.contains(id)) Demand(inode, false, 0, 0);
  }
}

std::shared_ptr<void> LeaseKeeper::BeginKernelWrite(InodeId inode) {
  kernel_writes_->Begin(inode);
  std::shared_ptr<void> until(nullptr,
                              [writes = kernel_writes_, inode](void*) { writes->End(inode); });
  const std::lock_guard lock(mutex_);
  Hasten(inode);
  return until;
}

void LeaseKeeper::Demand(const InodePtr& inode, bool flush, uint64_t epoch, uint64_t seq) {
  const InodeId id = inode->id();
  std::unique_lock lock(mutex_);
  const auto [found, added] = works_.try_emplace(id);
  Work& work = found->second;
  if (!added && seq != 0 && epoch == work.epoch && seq <= work.seq) return;
  if (seq != 0) {
    if (epoch != work.epoch) work.yielded = work.as_of = 0;
    work.epoch = epoch;
    work.seq = seq;
  }
  work.flush = work.flush || flush;
  if (added) {
    work.inode = inode;
    return Start(id, &lock);
  }
  work.waits = true;
  if (kernel_writes_->Any(id)) Hasten(id);
}

void LeaseKeeper::Start(InodeId inode, std::unique_lock<std::mutex>* lock) {
  Work& work = works_.at(inode);
  if (hooks_.forget_pages != nullptr) {
    Queue& queue = S_ISDIR(work.inode->attr().mode) ? directories_ : files_;
    queue.inodes.push_back(inode);
    if (queue.idle < queue.inodes.size() && queue.threads < queue.most && !stopping_) {
      ++queue.threads;
      threads_.emplace_back([this, &queue] { Forget(&queue); });
    }
    queue.grew.notify_one();
    return;
  }
  work.waits = false;
  if (hooks_.forget_here != nullptr) hooks_.forget_here(inode);
  GiveBack(&work, work.seq, lock);
}

void LeaseKeeper::GiveBack(Work* work, uint64_t seq, std::unique_lock<std::mutex>* lock) {
  if (!std::exchange(work->flush, false)) return Yield(work->inode->id(), seq, lock);
  work->flushing = true;
  const InodePtr inode = work->inode;
  lock->unlock();
  leases_.WhenQuiet(inode->id(), [this, inode, seq] {
    hooks_.flush(inode, [this, id = inode->id(), seq] {
      std::unique_lock relock(mutex_);
      works_.at(id).flushing = false;
      Yield(id, seq, &relock);
    });
  });
}

void LeaseKeeper::Yield(InodeId inode, uint64_t seq, std::unique_lock<std::mutex>* lock) {
  const auto found = works_.find(inode);
  if (seq <= found->second.yielded) return Settle(found, lock);
  found->second.yielded = seq;
  ++found->second.unanswered;
  const uint64_t epoch = found->second.epoch;
  lock->unlock();
  hooks_.yield(epoch, seq, {inode}, [this, inode] {
    std::unique_lock relock(mutex_);
    const auto answered = works_.find(inode);
    --answered->second.unanswered;
    Settle(answered, &relock);
  });
}

void LeaseKeeper::Hasten(InodeId inode) {
  const auto found = works_.find(inode);
  if (found == works_.end() || !found->second.forgetting) return;
  hasty_.push_back(inode);
  if (!std::exchange(hastens_, true) && !stopping_) {
    threads_.emplace_back([this] { HastenYields(); });
  }
  hastened_.notify_one();
}

// The kernel drops the attributes before it waits for the first page. Were the recall obeyed
// earlier, the kernel could drop them when both writers have ended, and with them the size that
// somebody has asked for since.
void LeaseKeeper::AwaitPageWait(InodeId inode, std::unique_lock<std::mutex>* lock) {
  if (hooks_.waits_for_page == nullptr) return;
  for (auto found = works_.find(inode); !stopping_ && found != works_.end();
       found = works_.find(inode)) {
    if (!found->second.forgetting) return;
    const pid_t forgetter = found->second.forgetter;
    lock->unlock();
    const bool waits = hooks_.waits_for_page(forgetter);
    if (!waits) std::this_thread::sleep_for(kPageWaitLook);
    lock->lock();
    if (waits) return;
  }
}

// Of what is to be flushed nothing is given up before.
void LeaseKeeper::YieldEarly(InodeId inode, std::unique_lock<std::mutex>* lock) {
  AwaitPageWait(inode, lock);
  const auto found = works_.find(inode);
  if (found == works_.end() || !found->second.forgetting || found->second.flush) return;
  Work& work = found->second;
  const uint64_t seq = work.seq;
  if (seq <= work.yielded) return;
  if (seq > work.as_of) {
    work.overtaken = true;
    work.waits = false;
    work.hastening = true;
    lock->unlock();
    hooks_.forget_attributes(inode);
    lock->lock();
    work.hastening = false;
  }
  Yield(inode, seq, lock);
}

void LeaseKeeper::Settle(Works::iterator work, std::unique_lock<std::mutex>* lock) {
  const Work& state = work->second;
  if (state.forgetting || state.hastening || state.flushing || state.unanswered > 0) return;
  if (state.waits) return Start(work->first, lock);
  works_.erase(work);
}

void LeaseKeeper::Forget(Queue* queue) {
  pthread_setname_np(pthread_self(), "forget");  // or it has the name of whoever made it
  std::unique_lock lock(mutex_);
  while (true) {
    ++queue->idle;
    queue->grew.wait(lock, [&] { return stopping_ || !queue->inodes.empty(); });
    --queue->idle;
    if (stopping_) return;
    const InodeId id = queue->inodes.front();
    queue->inodes.pop_front();
    Work& work = works_.at(id);
    work.waits = false;
    work.forgetting = true;
    work.forgetter = gettid();
    work.overtaken = false;
    work.fills = work.inode->page_fills();
    work.as_of = work.seq;
    if (!work.flush && kernel_writes_->Any(id)) Hasten(id);
    lock.unlock();
    hooks_.forget_pages(id);  // dirty pages are written by then
    lock.lock();
    work.forgetting = false;
    if (work.overtaken && !work.waits && work.inode->page_fills() != work.fills) {
      leftovers_.push_back({work.inode, work.inode->told(), {}});
    }
    GiveBack(&work, work.as_of, &lock);
    if (!lock.owns_lock()) lock.lock();
  }
}

void LeaseKeeper::Tick(TimePoint now) {
  std::vector<InodePtr> due;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(leftovers_, [&](Leftover& left) {
      if (left.inode->told() != left.told) return true;
      if (left.due == TimePoint{}) left.due = now + kUntilLeftoversGo;
      if (now < left.due) return false;
      due.push_back(left.inode);
      return true;
    });
  }
  for (const InodePtr& inode : due) Demand(inode, false, 0, 0);
}

// By a thread of its own, as the one that asks the kernel waits there.
void LeaseKeeper::HastenYields() {
  pthread_setname_np(pthread_self(), "forget/haste");
  std::unique_lock lock(mutex_);
  while (true) {
    hastened_.wait(lock, [this] { return stopping_ || !hasty_.empty(); });
    if (stopping_) return;
    const InodeId id = hasty_.front();
    hasty_.pop_front();
    YieldEarly(id, &lock);
    if (!lock.owns_lock()) lock.lock();
  }
}

}  // namespace weir::client
