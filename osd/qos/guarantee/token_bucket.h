// TokenBucket: AQuA §5.2's bucket. One token buys 1 KiB; `rate` bytes per second flow in, up to
// `cap` tokens stay. Refill is lazy and exact: whole tokens in an integer, the fraction of a token
// carried as a remainder, so that a week of refills gives to the byte what one refill gives.
//
// A level may be negative: a request larger than the cap is paid from a full bucket (A9), and own
// tokens are never refused for want of root tokens. Threads: not thread-safe. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/time.h"

namespace weir::osd::qos {

class TokenBucket {
 public:
  // Starts full.
  TokenBucket(uint64_t bytes_per_s, int64_t cap_tokens, TimePoint now);

  // From now on; the level stays, cut at the new cap. Under a lower rate a debt is as much lower:
  // it lasts no longer than it would have.
  void SetRate(uint64_t bytes_per_s, int64_t cap_tokens, TimePoint now);

  void Refill(TimePoint now);
  void Take(int64_t tokens) { level_ -= tokens; }
  // Takes, but does not go below `floor`; a level that is below already stays.
  void TakeDownTo(int64_t floor, int64_t tokens) {
    if (level_ > floor) level_ = std::max(level_ - tokens, floor);
  }
  // What is above `tokens` is lost.
  void CutAt(int64_t tokens) { level_ = std::min(level_, tokens); }

  // For a rate that holds over several places. What flows in while the bucket is full was maybe
  // used elsewhere: up to `most` tokens of it are kept, and pay first for the `tokens` that turn
  // out to have been. The rest comes off the level, not below `floor`; what is left over is
  // forgotten.
  void KeepSpill(int64_t most) {
    spill_most_ = static_cast<uint32_t>(std::clamp<int64_t>(most, 0, UINT32_MAX));
  }
  // What would make it a debt comes off gradually, all but 1/e of it in ComesOffIn. Taken at once,
  // what is told of in lumps makes the places take turns: whoever hears of nobody serves all, then
  // hears of all at once. With n places, each of which hears of the others after d, service at a
  // place is rate - (n - 1) * service(t - d), which grows for n > 2. Meanwhile places that begin
  // together serve more than the rate.
  void TakeElsewhere(int64_t floor, int64_t tokens);
  // A quarter of a second unless said; of what is taken from now on.
  void SetComesOffIn(Duration time) { comes_off_in_ns_ = static_cast<float>(time.count()); }

  // Whether a request of that size can be paid at the last refill: from a full bucket, any.
  [[nodiscard]] bool Covers(int64_t tokens) const { return level_ >= std::min(tokens, cap_); }
  // The first moment at which Refill makes Covers true; TimePoint::Max() if never. Somewhat before
  // it while some is still to come off.
  [[nodiscard]] TimePoint CoversAt(int64_t tokens) const;
  // The same after a refill.
  [[nodiscard]] TimePoint CoversAt(int64_t tokens, TimePoint now) {
    Refill(now);
    return CoversAt(tokens);
  }

  [[nodiscard]] int64_t level() const { return level_; }
  [[nodiscard]] int64_t cap() const { return cap_; }
  [[nodiscard]] uint64_t rate() const { return rate_; }

 private:
  void TakeWhatComesOff(double elapsed_ns);
  [[nodiscard]] double WaitWhileItComesOff(double wait_ns) const;

  uint64_t rate_;
  int64_t cap_;
  int64_t level_;
  uint64_t remainder_ = 0;  // of a token, in byte-nanoseconds per second: below 1024e9
  TimePoint refilled_;
  // Small, so that a class's leaf is one line of memory.
  uint32_t spill_ = 0;
  uint32_t spill_most_ = 0;  // 0: spill is lost
  float coming_off_ = 0;     // tokens: of TakeElsewhere, not taken yet
  float comes_off_in_ns_ = 250e6;
};

// A9: twice the largest request, or what flows in during 100 ms.
int64_t BucketCap(uint64_t bytes_per_s, int64_t largest_request_tokens);
// A bucket of that cap which keeps its level if it was there; none at a rate of 0.
void SetLeaf(std::optional<TokenBucket>* leaf, uint64_t bytes_per_s, int64_t largest_request_tokens,
             TimePoint now);
// Of a limit, which may not be exceeded by much in any second: the largest request, and what flows
// in during 20 ms, enough to wait for a turn without losing any. (An idle class keeps one request's
// worth only, as all OSDs may begin at once.)
int64_t LimitCap(uint64_t bytes_per_s, int64_t largest_request_tokens);

}  // namespace weir::osd::qos
