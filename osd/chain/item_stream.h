// ItemStream: the sending end of a link, whose items arrive in order although messages get lost. In
// a daemon the connection gives the order and this what goes out again on the next one.
// Pure. Threads: one.
#pragma once

#include <deque>
#include <functional>

#include "common/replication/messages.h"

namespace weir::osd {

class ItemStream {
 public:
  using Send = std::function<void(const replication::Item&)>;

  void Push(replication::ItemBody body, TimePoint now, const Send& send) {
    if (unanswered_.empty()) sent_at_ = now;
    unanswered_.push_back({++last_, std::move(body)});
    send(unanswered_.back());
  }
  void Answered(uint64_t number) {
    while (!unanswered_.empty() && unanswered_.front().number <= number) unanswered_.pop_front();
  }
  // Sends again what has been unanswered for `pause`.
  void Repeat(Duration pause, TimePoint now, const Send& send) {
    if (unanswered_.empty() || now < sent_at_ + pause) return;
    sent_at_ = now;
    for (const replication::Item& item : unanswered_) send(item);
  }
  [[nodiscard]] size_t unanswered() const { return unanswered_.size(); }

 private:
  uint64_t last_ = 0;
  TimePoint sent_at_;
  std::deque<replication::Item> unanswered_;
};

}  // namespace weir::osd
