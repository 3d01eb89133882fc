#include "osd/qos/device/disk_estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace weir::osd::qos {
namespace {

constexpr double kLimitedPart = 0.9;  // of a second, for it to be a sample
constexpr double kSlowPart = 0.75;
constexpr double kGoodPart = 0.9;

double Least(const DiskEstimate::Promise& promise, double part) {
  return std::max(part * static_cast<double>(promise.token_rate),
                  static_cast<double>(promise.promised));
}

}  // namespace

void DiskEstimate::Observe(State state, TimePoint now) {
  if (state_ == State::kLimits) limited_ += now - observed_;
  state_ = state;
  observed_ = now;
}

double DiskEstimate::Mean() const {
  if (samples_.empty()) return 0;
  return std::accumulate(samples_.begin(), samples_.end(), 0.0) /
         static_cast<double>(samples_.size());
}

double DiskEstimate::GiveOrTake() const {
  if (samples_.size() < 2) return Mean();
  const double mean = Mean();
  const auto count = static_cast<double>(samples_.size());
  double squares = 0;
  for (const double sample : samples_) squares += (sample - mean) * (sample - mean);
  return 2 * std::sqrt(squares / (count - 1) / count);
}

void DiskEstimate::CloseSecond(const Promise& promise, TimePoint now) {
  Observe(state_, now);
  const Duration passed = std::max(now - second_start_, Duration(1));
  const double rate = std::exchange(worth_, 0) / ToSeconds(passed);
  const bool limits =
      ToSeconds(std::exchange(limited_, Duration(0))) > kLimitedPart * ToSeconds(passed);
  second_start_ = now;
  if (limits || (!samples_.empty() && rate > Mean())) {
    samples_.push_back(rate);
    if (samples_.size() > kSamples) samples_.pop_front();
    learned_ = now;
  }
  Judge(promise, rate, now);
}

void DiskEstimate::Judge(const Promise& promise, double rate, TimePoint now) {
  good_seconds_ = rate >= Least(promise, kGoodPart) ? good_seconds_ + 1 : 0;
  const bool enough = samples_.size() >= kEnough && promise.token_rate > 0;
  if (!slow_) {
    slow_ = enough && Mean() + GiveOrTake() < Least(promise, kSlowPart);
    if (slow_) ++alarms_;
    return;
  }
  const bool recovered = good_seconds_ >= kRecovered;
  const bool promises_less =
      promise.token_rate == 0 || Mean() - GiveOrTake() >= Least(promise, kGoodPart);
  if (!recovered && !promises_less && now - learned_ < kForget) return;
  slow_ = false;
  if (!promises_less) samples_.clear();  // those of another time
}

DiskEstimate::View DiskEstimate::Now() const {
  return {.bytes_per_s = static_cast<uint64_t>(Mean()),
          .give_or_take = static_cast<uint64_t>(GiveOrTake()),
          .samples = static_cast<uint32_t>(samples_.size()),
          .slow = slow_,
          .alarms = alarms_};
}

}  // namespace weir::osd::qos
