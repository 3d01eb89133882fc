#include "client/qos/limit_window.h"

#include <algorithm>
#include <utility>

namespace weir::client {
namespace {

constexpr Duration kMoment = std::chrono::milliseconds(1);
constexpr Duration kPiece = std::chrono::milliseconds(20);
// Of the least latency, in quarters: one that falls by the rest does no harm at all.
constexpr int kCertain = 3;
// Enough to catch up with what a pause of the mount has missed.
constexpr Duration kSavedUp = std::chrono::milliseconds(200);

uint64_t MostOf(uint64_t bytes_per_s) {
  return bytes_per_s + bytes_per_s / 200;
}

}  // namespace

LimitWindow::LimitWindow(uint64_t bytes_per_s, uint64_t flying, TimePoint now)
    : flying_(flying), rate_(bytes_per_s), scaled_to_(rate_), most_(MostOf(bytes_per_s)) {
  if (flying > 0) sent_.push_back({TimePoint{0}, now - Duration(1), flying});
}

void LimitWindow::SetRate(uint64_t bytes_per_s, TimePoint now) {
  if (bytes_per_s == rate_) return;
  Forget(now);
  // A pace that was a much lower rate's is kept no more.
  if (bytes_per_s > rate_ && paced_ > last_sent_) {
    const double part = static_cast<double>(rate_) / static_cast<double>(bytes_per_s);
    paced_ = last_sent_ + FromSeconds(ToSeconds(paced_ - last_sent_) * part);
  }
  rate_ = bytes_per_s;
  most_ = MostOf(bytes_per_s);
  if (rate_ == 0) {
    may_catch_up_ = false;  // others have what it leaves
    return;
  }
  if (scaled_to_ > 0) Scale(static_cast<double>(scaled_to_), now);
  scaled_to_ = rate_;
}

// A request that was large beside the old rate, and is not as long ago as it took at that rate, is
// as much as the new one gives since then: else one of a tiny part would have used up whatever
// follows.
void LimitWindow::Scale(double old_rate, TimePoint now) {
  const auto rate = static_cast<double>(rate_);
  Events scaled;
  for (const Together& some : answered_) {
    const auto bytes = static_cast<double>(some.bytes);
    const double as_if = bytes * rate / old_rate;
    const double since = ToSeconds(std::max(Duration(0), now - some.last)) * rate;
    const bool large = bytes > old_rate * ToSeconds(kSavedUp);
    if (!large || as_if <= std::max(bytes, since)) {
      scaled.push_back({some.first, some.last, static_cast<uint64_t>(as_if)});
    } else if (since <= bytes) {
      scaled.push_back(some);
    } else {
      Spread(some.last, now, static_cast<uint64_t>(since), &scaled);
    }
  }
  std::stable_sort(scaled.begin(), scaled.end(),
                   [](const Together& a, const Together& b) { return a.last < b.last; });
  answered_ = std::move(scaled);
  answered_bytes_ = 0;
  over_ = 0;
  for (const Together& some : answered_) answered_bytes_ += some.bytes;
  counted_bytes_ = answered_bytes_;
}

void LimitWindow::Spread(TimePoint from, TimePoint to, uint64_t bytes, Events* out) {
  const int64_t pieces = std::max<int64_t>(1, (to - from) / kPiece);
  for (int64_t i = 1; i <= pieces; ++i) {
    const TimePoint at = from + (to - from) * i / pieces;
    const auto part = static_cast<uint64_t>(pieces);
    out->push_back({at, at, bytes / part});
  }
}

void LimitWindow::Forget(TimePoint now) {
  while (!answered_.empty() && answered_.front().last + kSpan <= now) {
    over_ > 0 ? --over_ : counted_bytes_ -= answered_.front().bytes;
    answered_bytes_ -= answered_.front().bytes;
    answered_.pop_front();
  }
  while (!sent_.empty() && (sent_.front().bytes == 0 || sent_.front().last + kOverdue <= now)) {
    flying_ -= sent_.front().bytes;
    sent_.pop_front();
  }
}

// What was over for a longer latency may be back for a shorter one.
void LimitWindow::MoveOver(TimePoint from) {
  for (; over_ < answered_.size() && answered_[over_].last <= from; ++over_) {
    counted_bytes_ -= answered_[over_].bytes;
  }
  for (; over_ > 0 && answered_[over_ - 1].last > from; --over_) {
    counted_bytes_ += answered_[over_ - 1].bytes;
  }
}

bool LimitWindow::Admits(OsdId osd, TimePoint now) {
  Forget(now);
  const auto seen = latencies_.find(osd);
  least_ = seen == latencies_.end() ? Duration(0) : kCertain * seen->second.At(now) / 4;
  MoveOver(now + least_ - kSpan);
  return counted_bytes_ + flying_ <= most_ && paced_ <= now;
}

TimePoint LimitWindow::AdmitsAt() const {
  auto answer = answered_.begin() + static_cast<ptrdiff_t>(over_);
  auto flight = sent_.begin();
  uint64_t left = counted_bytes_ + flying_;
  TimePoint when = paced_;
  while (left > most_ && (answer != answered_.end() || flight != sent_.end())) {
    const TimePoint over =
        answer == answered_.end() ? TimePoint::Max() : answer->last + kSpan - least_;
    const TimePoint overdue = flight == sent_.end() ? TimePoint::Max() : flight->last + kOverdue;
    when = std::max(paced_, std::min(over, overdue));
    left -= over <= overdue ? answer++->bytes : flight++->bytes;
  }
  return when;
}

bool LimitWindow::AdmitsAnswer(TimePoint arrived, TimePoint now) {
  Forget(now);
  return answered_bytes_ <= most_ || arrived + kLongestHeld <= now;
}

TimePoint LimitWindow::AdmitsAnswerAt(TimePoint arrived) const {
  TimePoint when = TimePoint::Max();
  uint64_t left = answered_bytes_;
  for (auto answer = answered_.begin(); left > most_; ++answer) {
    when = answer->last + kSpan;
    left -= answer->bytes;
  }
  return std::min(when, arrived + kLongestHeld);
}

// Into the last of them, if it is one of those from `from` on and was a moment ago.
void LimitWindow::Add(Events* events, size_t from, uint64_t bytes, TimePoint now) {
  if (events->size() > from && now - events->back().first < kMoment) {
    Together& some = events->back();
    some = {std::min(some.first, now), std::max(some.last, now), some.bytes + bytes};
  } else {
    events->push_back({now, now, bytes});
  }
}

void LimitWindow::Sent(uint64_t bytes, TimePoint now) {
  const auto rate = static_cast<double>(rate_);
  const Duration step = rate_ > 0 ? FromSeconds(static_cast<double>(bytes) / rate) : kSpan;
  paced_ = std::max(paced_, now - (may_catch_up_ ? kSavedUp : Duration(0))) + step;
  may_catch_up_ = true;
  last_sent_ = now;
  Add(&sent_, 0, bytes, now);
  flying_ += bytes;
}

void LimitWindow::Failed(uint64_t bytes, TimePoint left) {
  const auto flight =
      std::lower_bound(sent_.begin(), sent_.end(), left,
                       [](const Together& some, TimePoint when) { return some.last < when; });
  if (flight == sent_.end() || left < flight->first) return;  // it was overdue
  const uint64_t known = std::min(bytes, flight->bytes);
  flight->bytes -= known;
  flying_ -= known;
}

void LimitWindow::Answered(uint64_t bytes, TimePoint left, TimePoint now) {
  Failed(bytes, left);
  Add(&answered_, over_, bytes, now);
  served_bytes_ += bytes;
  answered_bytes_ += bytes;
  counted_bytes_ += bytes;
}

}  // namespace weir::client
