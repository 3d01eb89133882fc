#include "common/qos/limit_divider.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace weir {
namespace {

// What a mount is served is averaged over so long.
constexpr Duration kLately = std::chrono::milliseconds(500);
// What is asked for beyond what was served: whoever grows by less is not held back.
constexpr double kMargin = 0.02;
// Whoever was served so much of its part has used it up.
constexpr double kUsedUp = 0.985;
// It asks for more then: for what serves its queue in so long, within bounds, parts of its own.
constexpr Duration kServeIn = std::chrono::milliseconds(100);
constexpr double kGrowthLeast = 0.05;
constexpr double kGrowthMost = 0.25;
constexpr double kGrowthAtOnce = 0.05;  // of the limit, so that small parts do not grow for seconds
// What is asked for falls no faster than by this time constant: the mean still holds what a smaller
// part let through before.
constexpr Duration kFalls = std::chrono::milliseconds(600);
// Whoever has a share asks for so much: nobody is left out.
constexpr double kLeast = 1e-4;
// Whatever a mount says that it was served, it is forgotten soon.
constexpr double kServedMost = 4;

double Decay(Duration passed, Duration in) {
  return std::exp(-ToSeconds(passed) / ToSeconds(in));
}

}  // namespace

void LimitDivider::SetLimits(std::map<ClassId, uint64_t> limits) {
  limits_ = std::move(limits);
  std::erase_if(classes_, [this](const auto& known) { return !limits_.contains(known.first); });
}

double LimitDivider::Sum(const Shares& shares) {
  double sum = 0;
  for (const auto& [mount, share] : shares) sum += share.granted;
  return sum;
}

double LimitDivider::Granted(ClassId id) const {
  const auto found = classes_.find(id);
  return found == classes_.end() ? 0 : Sum(found->second);
}

double LimitDivider::TargetOf(const Shares& shares, Mount mount) {
  std::vector<double> asked;
  double sum = 0;
  double mine = 0;
  for (const auto& [at, share] : shares) {
    asked.push_back(share.asks);
    sum += share.asks;
    if (at == mount) mine = share.asks;
  }
  if (sum <= 1) return mine / sum;
  std::sort(asked.begin(), asked.end());
  double left = 1;
  double level = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    level = left / static_cast<double>(asked.size() - i);
    if (asked[i] > level) break;
    left -= asked[i];
  }
  return std::min(mine, level);
}

void LimitDivider::Note(Share* share, uint64_t limit, const LimitReport& report, TimePoint now) {
  const Duration interval = std::max<Duration>(report.interval, std::chrono::milliseconds(1));
  const double seconds = ToSeconds(interval);
  const auto rate = static_cast<double>(std::max<uint64_t>(limit, 1));
  const double queued = static_cast<double>(report.queued_bytes) / rate / ToSeconds(kServeIn);
  // An answer takes its time: what was obeyed meanwhile was the lower of both at least.
  const double part = std::min(report.part, std::exchange(share->reported, report.part));
  if (part <= 0) {  // what it was served then says nothing of what it can use
    share->began = now;
    share->asks = report.part <= 0 ? queued : std::max(share->asks, report.part);
    share->asks = std::clamp(share->asks, kLeast, 1.0);
    return;
  }
  // Of the first moments the mean.
  const double since = std::max(ToSeconds(now - share->began), seconds);
  const double news = std::max(seconds / since, 1 - Decay(interval, kLately));
  const double served = static_cast<double>(report.served_bytes) / rate / seconds;
  share->served = std::min(share->served + (served - share->served) * news, kServedMost);
  share->obeyed += (part - share->obeyed) * news;
  share->asks = std::max(share->served * (1 + kMargin), share->asks * Decay(interval, kFalls));
  // Of a small part the last moments tell: its mean stands for little.
  const bool now_used_up = part < kGrowthAtOnce && served >= kUsedUp * part;
  if (now_used_up || share->served >= kUsedUp * share->obeyed) {
    const double held = std::clamp(ToSeconds(report.limited) / seconds, 0.0, 1.0);
    const double most = std::max(kGrowthMost * part, kGrowthAtOnce);
    const double growth = std::clamp(queued, kGrowthLeast * part, most);
    share->asks = std::max(share->asks, part + held * growth);
  }
  share->asks = std::clamp(share->asks, kLeast, 1.0);
}

void LimitDivider::ForgetSilent(TimePoint now) {
  for (auto it = last_.begin(); it != last_.end();) {
    const auto [mount, last] = *it++;
    if (now - last.heard > kForgotten) Gone(mount);
  }
}

std::vector<LimitPart> LimitDivider::Divide(Mount mount, uint64_t number,
                                            const std::vector<LimitReport>& reports,
                                            TimePoint now) {
  std::vector<LimitPart> answer;
  ForgetSilent(now);
  Last& last = last_[mount];
  if (number <= last.number) return answer;
  last = {number, now};
  for (auto& [id, shares] : classes_) {
    const bool told =
        std::any_of(reports.begin(), reports.end(),
                    [id = id](const LimitReport& report) { return report.class_id == id; });
    if (!told) shares.erase(mount);
  }
  std::set<ClassId> seen;
  for (LimitReport report : reports) {
    const auto limit = limits_.find(report.class_id);
    if (limit == limits_.end() || !seen.insert(report.class_id).second) continue;
    Shares& shares = classes_[report.class_id];
    const auto [entry, is_new] = shares.try_emplace(mount);
    Share& share = entry->second;
    // What was given to somebody who was forgotten since, or by another divider, is not known.
    if (!is_new) report.part = std::min(report.part, share.granted);
    Note(&share, limit->second, report, now);
    share.granted = report.part;
    // Less than nothing is free when somebody is back whose part was given away.
    const double most = std::max(0.0, report.part + 1 - Sum(shares));
    knows_all_ = knows_all_ || now - began_ >= kForgotten;
    const double part = std::min(knows_all_ ? TargetOf(shares, mount) : report.part, most);
    share.granted = std::max(report.part, part);
    answer.push_back({report.class_id, part, 1 / static_cast<double>(shares.size())});
  }
  std::erase_if(classes_, [](const auto& of) { return of.second.empty(); });
  return answer;
}

void LimitDivider::Gone(Mount mount) {
  last_.erase(mount);
  for (auto& [id, shares] : classes_) shares.erase(mount);
}

}  // namespace weir
