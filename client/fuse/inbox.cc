#include "client/fuse/inbox.h"

#include <utility>

#include "common/base/short_turns.h"

namespace weir::client {

void Inbox::Enter() {
  if (weight_ == Weight::kMost) WeighMost();
}

void Inbox::RunAhead(bool wanted) {
  if (weight_ == Weight::kNormal || wanted == ahead_) return;
  ahead_ = wanted && RunAheadOfTurns();
  if (!wanted) WeighMost();
}

void Inbox::Take(std::span<uint8_t> request) {
  RunAhead(hurried_());
  handler_.Handle(Buffer::Borrowed(request));
}

void Inbox::TakeLarge(Buffer request) {
  large_.push_back(std::move(request));
  ++large_taken_;
  reactor_.Continue(this);
}

void Inbox::OnReadable() {
  if (large_.empty()) return;
  HandleLarge();
  if (!large_.empty()) reactor_.Continue(this);
}

void Inbox::HandleLarge() {
  RunAhead(false);
  const Buffer request = std::move(large_.front());
  large_.pop_front();
  handler_.Handle(request);
  ++large_handled_;
  while (!waiting_.empty() && waiting_.front().large <= large_handled_) {
    const std::function<void()> then = std::move(waiting_.front().then);
    waiting_.pop_front();
    then();
  }
}

void Inbox::Empty() {
  while (!large_.empty()) HandleLarge();
  reactor_.DoNotContinue(this);
}

void Inbox::WhenHandled(std::function<void()> then) {
  if (large_.empty()) return then();
  waiting_.push_back({large_taken_, std::move(then)});
}

}  // namespace weir::client
