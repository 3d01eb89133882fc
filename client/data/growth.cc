#include "client/data/growth.h"

#include <optional>
#include <utility>
#include <vector>

namespace weir::client {

void Growth::Await(const InodePtr& inode, ClassId class_id, uint64_t end, Ready ready,
                   Abandoned abandoned) {
  {
    std::lock_guard lock(mutex_);
    File& file = files_[inode->id()];
    file.inode = inode;
    file.waiting.push_back({class_id, end, std::move(ready), std::move(abandoned)});
    if (file.waiting.size() > 1) return;
  }
  AskFor({inode->id(), class_id, end});
}

void Growth::AskFor(const Question& question) {
  ask_(question, [this, question](const Result<uint64_t>& end) { Answered(question, end); });
}

void Growth::Answered(const Question& question, const Result<uint64_t>& end) {
  std::vector<Ready> ready;
  std::optional<Question> next;
  {
    std::lock_guard lock(mutex_);
    const auto found = files_.find(question.inode);
    File& file = found->second;
    if (end.ok()) file.inode->Allow(*end);
    do {
      ready.push_back(std::move(file.waiting.front().ready));
      file.waiting.pop_front();
    } while (end.ok() && !file.waiting.empty() && file.waiting.front().end <= *end);
    if (file.waiting.empty()) {
      files_.erase(found);
    } else {
      const Waiter& front = file.waiting.front();
      next = Question{question.inode, front.class_id, front.end};
    }
  }
  for (const Ready& one : ready) one(end.status());
  if (next.has_value()) AskFor(*next);
}

// The first of each file stays: its answer is on its way, and what it writes then goes unseen.
void Growth::DropAbandoned() {
  std::vector<Ready> dropped;
  {
    std::lock_guard lock(mutex_);
    for (auto& [id, file] : files_) {
      for (auto it = std::next(file.waiting.begin()); it != file.waiting.end();) {
        if (it->abandoned == nullptr || !*it->abandoned) {
          ++it;
          continue;
        }
        dropped.push_back(std::move(it->ready));
        it = file.waiting.erase(it);
      }
    }
  }
  for (const Ready& one : dropped) one({ErrorCode::kCancelled, "its process was killed"});
}

}  // namespace weir::client
