#include "osd/qos/guarantee/token_bucket.h"

#include <cmath>
#include <utility>

#include "common/qos/qos_config.h"

namespace weir::osd::qos {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kUnitsPerToken = kTokenBytes * 1'000'000'000;

}  // namespace

TokenBucket::TokenBucket(uint64_t bytes_per_s, int64_t cap_tokens, TimePoint now)
    : rate_(bytes_per_s), cap_(cap_tokens), level_(cap_tokens), refilled_(now) {}

void TokenBucket::SetRate(uint64_t bytes_per_s, int64_t cap_tokens, TimePoint now) {
  Refill(now);
  if (bytes_per_s < rate_) {
    const double part = static_cast<double>(bytes_per_s) / static_cast<double>(rate_);
    coming_off_ *= static_cast<float>(part);
    if (level_ < 0) level_ = static_cast<int64_t>(static_cast<double>(level_) * part);
  }
  rate_ = bytes_per_s;
  cap_ = cap_tokens;
  if (level_ >= cap_) {
    level_ = cap_;
    remainder_ = 0;
  }
}

void TokenBucket::Refill(TimePoint now) {
  if (now <= refilled_) return;
  const auto elapsed = static_cast<uint64_t>((now - refilled_).count());
  refilled_ = now;
  if (coming_off_ > 0) TakeWhatComesOff(static_cast<double>(elapsed));
  if (level_ >= cap_ && spill_most_ == 0) return;
  uint64_t units;
  if (!__builtin_mul_overflow(rate_, elapsed, &units) &&
      !__builtin_add_overflow(units, remainder_, &units)) [[likely]] {
    level_ += static_cast<int64_t>(units / kUnitsPerToken);
    remainder_ = units % kUnitsPerToken;
  } else {
    const Wide wide = static_cast<Wide>(rate_) * elapsed + remainder_;
    const Wide tokens = wide / kUnitsPerToken;
    const bool fills = tokens >= static_cast<Wide>(cap_ - level_) + static_cast<Wide>(spill_most_);
    level_ = fills ? cap_ + int64_t{spill_most_} : level_ + static_cast<int64_t>(tokens);
    remainder_ = static_cast<uint64_t>(wide % kUnitsPerToken);
  }
  if (level_ >= cap_) {
    spill_ = static_cast<uint32_t>(std::min(spill_ + level_ - cap_, int64_t{spill_most_}));
    level_ = cap_;
    if (spill_most_ == 0) remainder_ = 0;
  }
}

void TokenBucket::TakeElsewhere(int64_t floor, int64_t tokens) {
  const int64_t rest = std::max<int64_t>(0, tokens - std::exchange(spill_, 0));
  const int64_t at_once = std::clamp<int64_t>(level_, 0, rest);
  level_ -= at_once;
  const float room = static_cast<float>(level_ - floor) - coming_off_;
  if (room > 0) coming_off_ += std::min(static_cast<float>(rest - at_once), room);
}

void TokenBucket::TakeWhatComesOff(double elapsed_ns) {
  const float before = coming_off_;
  coming_off_ *= static_cast<float>(std::exp(-elapsed_ns / comes_off_in_ns_));
  if (coming_off_ < 1) coming_off_ = 0;
  level_ -= static_cast<int64_t>(before) - static_cast<int64_t>(coming_off_);
}

// With t0 the wait if nothing came off, t is where g(t) = t - t0 - f(t) is zero, f(t) being the
// time in which the rate gives what has come off by then. g is convex: Newton's steps from beyond
// stay beyond, and the chord from before to beyond meets zero before g does.
double TokenBucket::WaitWhileItComesOff(double wait_ns) const {
  const double per_ns = static_cast<double>(rate_) / static_cast<double>(kUnitsPerToken);
  const double all = static_cast<double>(coming_off_) / per_ns;
  const double comes_off_in = comes_off_in_ns_;
  const auto left = [=](double t) { return std::exp(-t / comes_off_in); };
  const auto g = [=](double t) { return t - wait_ns - all * (1 - left(t)); };
  double before = wait_ns;
  double beyond = wait_ns + all;
  for (int i = 0; i < 3; ++i) {
    beyond -= g(beyond) / (1 - all / comes_off_in * left(beyond));
    const double lacks = -g(before);
    before += (beyond - before) * lacks / (lacks + std::max(g(beyond), 1.0));
  }
  return before;
}

TimePoint TokenBucket::CoversAt(int64_t tokens) const {
  const int64_t target = std::min(tokens, cap_);
  if (level_ >= target) return refilled_;
  if (rate_ == 0) return TimePoint::Max();
  const Wide missing = static_cast<Wide>(target - level_) * kUnitsPerToken - remainder_;
  Wide wait = (missing + rate_ - 1) / rate_;
  const auto left = static_cast<uint64_t>(INT64_MAX - std::max<int64_t>(refilled_.ns, 0));
  if (wait >= left) return TimePoint::Max();
  if (coming_off_ > 0) {
    const double longer = WaitWhileItComesOff(static_cast<double>(wait));
    if (longer >= static_cast<double>(left)) return TimePoint::Max();
    wait = std::max(wait, static_cast<Wide>(longer));
  }
  return refilled_ + Duration(static_cast<int64_t>(wait));
}

int64_t BucketCap(uint64_t bytes_per_s, int64_t largest_request_tokens) {
  const auto tenth = static_cast<int64_t>(bytes_per_s / (10 * kTokenBytes));
  return std::max({2 * largest_request_tokens, tenth, int64_t{1}});
}

void SetLeaf(std::optional<TokenBucket>* leaf, uint64_t bytes_per_s, int64_t largest_request_tokens,
             TimePoint now) {
  const int64_t cap = BucketCap(bytes_per_s, largest_request_tokens);
  if (bytes_per_s == 0) return leaf->reset();
  if (!*leaf) leaf->emplace(bytes_per_s, cap, now);
  (*leaf)->SetRate(bytes_per_s, cap, now);
}

int64_t LimitCap(uint64_t bytes_per_s, int64_t largest_request_tokens) {
  const auto moment = static_cast<int64_t>(bytes_per_s / (50 * kTokenBytes));
  return std::max(largest_request_tokens + moment, int64_t{1});
}

}  // namespace weir::osd::qos
