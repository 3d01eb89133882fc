#include "osd/qos/guarantee/token_bucket.h"

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
    level_ = fills ? cap_ + spill_most_ : level_ + static_cast<int64_t>(tokens);
    remainder_ = static_cast<uint64_t>(wide % kUnitsPerToken);
  }
  if (level_ >= cap_) {
    spill_ = std::min(spill_ + level_ - cap_, spill_most_);
    level_ = cap_;
    if (spill_most_ == 0) remainder_ = 0;
  }
}

void TokenBucket::TakeElsewhere(int64_t floor, int64_t tokens) {
  TakeDownTo(floor, std::max<int64_t>(0, tokens - spill_));
  spill_ = 0;
}

void TokenBucket::TakeDownTo(int64_t floor, int64_t tokens) {
  if (level_ > floor) level_ = std::max(level_ - tokens, floor);
}

TimePoint TokenBucket::CoversAt(int64_t tokens) const {
  const int64_t target = std::min(tokens, cap_);
  if (level_ >= target) return refilled_;
  if (rate_ == 0) return TimePoint::Max();
  const Wide missing = static_cast<Wide>(target - level_) * kUnitsPerToken - remainder_;
  const Wide wait = (missing + rate_ - 1) / rate_;
  const auto left = static_cast<uint64_t>(INT64_MAX - std::max<int64_t>(refilled_.ns, 0));
  if (wait >= left) return TimePoint::Max();
  return refilled_ + Duration(static_cast<int64_t>(wait));
}

int64_t BucketCap(uint64_t bytes_per_s, int64_t largest_request_tokens) {
  const auto tenth = static_cast<int64_t>(bytes_per_s / (10 * kTokenBytes));
  return std::max({2 * largest_request_tokens, tenth, int64_t{1}});
}

int64_t LimitCap(uint64_t bytes_per_s, int64_t largest_request_tokens) {
  const auto moment = static_cast<int64_t>(bytes_per_s / (50 * kTokenBytes));
  return std::max(largest_request_tokens + moment, int64_t{1});
}

}  // namespace weir::osd::qos
