#include "osd/store/commit_queue.h"

namespace weir::osd {

CommitQueue::CommitQueue(KvStore& kv, BlockDevice& device) : kv_(kv), device_(device) {
  committer_ = std::thread([this] { CommitLoop(); });
  finisher_ = std::thread([this] { FinishLoop(); });
}

CommitQueue::~CommitQueue() {
  Stop();
}

void CommitQueue::Push(Item item) {
  bool was_empty;
  {
    std::lock_guard lock(mutex_);
    was_empty = queue_.empty();
    queue_.push_back(std::move(item));
  }
  if (was_empty) changed_.notify_one();
}

void CommitQueue::Stop() {
  if (!committer_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  committer_.join();
  {
    std::lock_guard lock(finished_mutex_);
    finish_stopping_ = true;
  }
  finished_changed_.notify_one();
  finisher_.join();
}

bool CommitQueue::TakeDurable(Group* group) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  while (!queue_.empty() && group->size() < kGroupMax &&
         (queue_.front().data_stamp <= device_.durable_writes() || failed_)) {
    group->push_back(std::move(queue_.front()));
    queue_.pop_front();
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

void CommitQueue::CommitLoop() {
  for (;;) {
    Group group;
    if (!TakeDurable(&group)) return;
    if (group.empty()) {
      // An earlier flush that failed, whoever asked for it, may have lost this data for good.
      if (!device_.Flush().ok() || device_.flush_failed()) failed_ = true;
      continue;
    }
    Status status = CommitGroup(group);
    if (!status.ok()) failed_ = true;
    if (after_group) after_group();
    {
      std::lock_guard lock(finished_mutex_);
      finished_.push_back({std::move(group), std::move(status)});
    }
    finished_changed_.notify_one();
  }
}

void CommitQueue::FinishLoop() {
  for (;;) {
    std::vector<Finished> ready;
    {
      std::unique_lock lock(finished_mutex_);
      finished_changed_.wait(lock, [this] { return finish_stopping_ || !finished_.empty(); });
      if (finished_.empty()) return;
      ready.swap(finished_);
    }
    for (Finished& finished : ready) {
      for (Item& item : finished.group) item.done(finished.status);
    }
  }
}

}  // namespace weir::osd
