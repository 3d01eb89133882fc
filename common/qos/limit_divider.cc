#include "common/qos/limit_divider.h"

#include <algorithm>
#include <cmath>
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
// An answer that lowers a part by less is about the same as the one before.
constexpr double kClearlyLess = 0.9;
// After changes in a sixteenth of the shares the level is found anew.
constexpr size_t kChangesOf = 16;

double Decay(Duration passed, Duration in) {
  return std::exp(-ToSeconds(passed) / ToSeconds(in));
}

}  // namespace

void LimitDivider::SetLimits(std::map<ClassId, uint64_t> limits) {
  limits_ = std::move(limits);
  std::erase_if(classes_, [this](const auto& known) { return !limits_.contains(known.first); });
}

double LimitDivider::Granted(ClassId id) const {
  const auto found = classes_.find(id);
  return found == classes_.end() ? 0 : found->second.granted;
}

double LimitDivider::TargetOf(const Class& of, const Share& share) {
  return of.asks <= 1 ? share.asks / of.asks : std::min(share.asks, of.level);
}

void LimitDivider::Changed(Class& of) {
  if (++of.changes * kChangesOf < of.shares.size()) return;
  of.changes = 0;
  of.granted = of.asks = 0;
  asked_.clear();
  for (const auto& [mount, share] : of.shares) {
    of.granted += share.granted;
    of.asks += share.asks;
    asked_.push_back(share.asks);
  }
  looked_at_ += asked_.size();
  of.level = 1;
  if (of.asks <= 1) return;
  std::sort(asked_.begin(), asked_.end());
  double left = 1;
  for (size_t i = 0; i < asked_.size(); ++i) {
    of.level = left / static_cast<double>(asked_.size() - i);
    if (asked_[i] > of.level) break;
    left -= asked_[i];
  }
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

LimitDivider::Last& LimitDivider::Hear(Mount mount) {
  const auto [entry, is_new] = last_.try_emplace(mount);
  if (is_new) entry->second.place = by_time_.insert(by_time_.end(), mount);
  return entry->second;
}

void LimitDivider::ForgetSilent(TimePoint now) {
  while (!by_time_.empty() && now - last_.at(by_time_.front()).heard > kForgotten) {
    Gone(by_time_.front());
  }
}

LimitPart LimitDivider::Answer(Class& of, Mount mount, LimitReport report, TimePoint now) {
  const auto [entry, is_new] = of.shares.try_emplace(mount);
  Share& share = entry->second;
  // What was given to somebody who was forgotten since, or by another divider, is not known.
  if (!is_new) report.part = std::min(report.part, share.granted);
  // It was cut down to an equal part when it was forgotten.
  if (is_new && knows_all_) {
    report.part = std::min(report.part, 1 / static_cast<double>(of.shares.size()));
  }
  // It has long obeyed what it was given, or would have been cut down.
  if (share.lowered && now - share.lowered->at > kForgotten) {
    report.part = std::min(report.part, share.lowered->to);
  }
  of.granted += report.part - share.granted;
  share.granted = report.part;
  const double asked = share.asks;
  Note(&share, limits_.at(report.class_id), report, now);
  of.asks += share.asks - asked;
  Changed(of);
  // Less than nothing is free when somebody is back whose part was given away.
  const double most = std::max(0.0, report.part + 1 - of.granted);
  knows_all_ = knows_all_ || now - began_ >= kForgotten;
  const double part = std::min(knows_all_ ? TargetOf(of, share) : report.part, most);
  if (part >= report.part) {
    share.lowered.reset();
  } else if (!share.lowered || part < kClearlyLess * share.lowered->to) {
    share.lowered = {part, now};
  }
  share.granted = std::max(report.part, part);
  of.granted += share.granted - report.part;
  return {report.class_id, part, 1 / static_cast<double>(of.shares.size())};
}

std::vector<LimitPart> LimitDivider::Divide(Mount mount, uint64_t number,
                                            const std::vector<LimitReport>& reports,
                                            TimePoint now) {
  std::vector<LimitPart> answer;
  ForgetSilent(now);
  Last& last = Hear(mount);
  if (number <= last.number) return answer;
  last.number = number;
  last.heard = now;
  by_time_.splice(by_time_.end(), by_time_, last.place);
  std::set<ClassId> told;
  for (const LimitReport& report : reports) {
    if (limits_.contains(report.class_id)) told.insert(report.class_id);
  }
  for (const ClassId id : last.classes) {
    if (!told.contains(id)) Leave(id, mount);
  }
  last.classes = told;
  for (const LimitReport& report : reports) {
    if (told.erase(report.class_id) == 0) continue;
    answer.push_back(Answer(classes_[report.class_id], mount, report, now));
  }
  return answer;
}

void LimitDivider::Leave(ClassId id, Mount mount) {
  const auto found = classes_.find(id);
  if (found == classes_.end()) return;
  Class& of = found->second;
  const auto share = of.shares.find(mount);
  if (share == of.shares.end()) return;
  of.granted -= share->second.granted;
  of.asks -= share->second.asks;
  of.shares.erase(share);
  if (of.shares.empty()) {
    classes_.erase(found);
  } else {
    Changed(of);
  }
}

void LimitDivider::Gone(Mount mount) {
  const auto found = last_.find(mount);
  if (found == last_.end()) return;
  for (const ClassId id : found->second.classes) Leave(id, mount);
  by_time_.erase(found->second.place);
  last_.erase(found);
}

}  // namespace weir
