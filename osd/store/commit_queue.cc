#include "osd/store/commit_queue.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace weir::osd {

CommitQueue::CommitQueue(KvStore& kv, BlockDevice& device, Loop* loop, std::function<void()> wake)
    : kv_(kv), device_(device), loop_(loop), wake_(std::move(wake)) {
  if (wake_) return;
  committer_ = std::thread([this] {
    while (CommitSome()) {
    }
  });
}

CommitQueue::~CommitQueue() {
  Stop();
}

void CommitQueue::Push(Item item) {
  if (item.patience.count() > 0) item.commit_by = SystemClock::Get().Now() + item.patience;
  bool sooner;
  {
    std::lock_guard lock(mutex_);
    sooner = item.commit_by < commit_by_;
    if (sooner) commit_by_ = item.commit_by;
    queue_.push_back(std::move(item));
  }
  if (sooner) changed_.notify_one();
  if (wake_) wake_();
}

bool CommitQueue::Work() {
  return CommitSome();
}

void CommitQueue::Stop() {
  while (wake_ && Work()) {
  }
  if (!committer_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  committer_.join();
}

bool CommitQueue::TakeDurable(Group* group) {
  std::unique_lock lock(mutex_);
  while (!wake_ && !stopping_ && queue_.size() < kGroupMax) {
    if (queue_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Duration left = commit_by_ - SystemClock::Get().Now();
    if (left.count() <= 0) break;
    changed_.wait_for(lock, left);
  }
  while (!queue_.empty() && group->size() < kGroupMax &&
         (queue_.front().data_stamp <= device_.durable_writes() || failed_)) {
    group->push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  if (!group->empty()) {
    commit_by_ = TimePoint::Max();
    for (const Item& item : queue_) commit_by_ = std::min(commit_by_, item.commit_by);
  }
  return !group->empty() || !queue_.empty();
}

Status CommitQueue::CommitGroup(Group& group) {
  if (failed_) {
    return {ErrorCode::kIo, device_.name() +
                                ": an earlier commit failed; the store takes no more changes "
                                "until it is opened again"};
  }
  WriteBatch batch;
  for (Item& item : group) batch.Append(std::move(item.batch));
  if (batch.empty()) return {};
  WEIR_RETURN_IF_ERROR(kv_.Apply(batch, Durability::kDurable));
  ++commits_;
  committed_items_ += group.size();
  return {};
}

bool CommitQueue::CommitSome() {
  Group group;
  if (!TakeDurable(&group)) return false;
  if (group.empty()) {
    // An earlier flush that failed, whoever asked for it, may have lost this data for good.
    if (!device_.Flush().ok() || device_.flush_failed()) failed_ = true;
    return true;
  }
  Status status = CommitGroup(group);
  if (!status.ok()) failed_ = true;
  Deliver(std::move(group), std::move(status));
  if (after_group) after_group();
  return true;
}

void CommitQueue::Deliver(Group group, Status status) {
  const auto run = [group = std::make_shared<Group>(std::move(group)), status = std::move(status)] {
    for (Item& item : *group) item.done(status);
  };
  loop_ != nullptr ? loop_->Post(run) : run();
}

}  // namespace weir::osd
