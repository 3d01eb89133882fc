#include "common/qos/limit_share.h"

#include <algorithm>

namespace weir {
namespace {

constexpr Duration kGivenUpAfter = std::chrono::seconds(1);  // without use
constexpr double kMuch = 0.01;

}  // namespace

double LimitShare::Class::PartAt(TimePoint now) const {
  return now < lasts_until ? part : std::min(part, equal);
}

double LimitShare::PartOf(ClassId id, TimePoint now) const {
  const auto found = classes_.find(id);
  return found == classes_.end() ? 0 : found->second.PartAt(now);
}

std::optional<LimitShare::Request> LimitShare::Tell(const std::map<ClassId, Counts>& counts,
                                                    TimePoint now) {
  std::erase_if(classes_, [&counts](const auto& known) { return !counts.contains(known.first); });
  Request request;
  for (const auto& [id, count] : counts) {
    const auto [entry, is_new] = classes_.try_emplace(id);
    Class& known = entry->second;
    if (is_new) {
      known.heard = known.told = count;
      known.heard_at = now - kLimitReportInterval;
      known.used = now - kGivenUpAfter;
    }
    if (count.served_bytes != known.told.served_bytes || count.queued_bytes > 0) known.used = now;
    known.told = count;
    known.told_at = now;
    if (now - known.used >= kGivenUpAfter) {
      known.part = 0;
      known.heard = count;
      known.heard_at = now;
      continue;
    }
    // A sum that is smaller was started anew.
    const uint64_t before = std::min(known.heard.served_bytes, count.served_bytes);
    request.reports.push_back(
        {.class_id = id,
         .part = known.PartAt(now),
         .interval = now - known.heard_at,
         .served_bytes = count.served_bytes - before,
         .queued_bytes = count.queued_bytes,
         .limited = std::max(Duration(0), count.limited - known.heard.limited)});
  }
  // The first that is about nothing any more says so.
  if (request.reports.empty() && !told_) return std::nullopt;
  told_ = !request.reports.empty();
  request.number = ++number_;
  return request;
}

bool LimitShare::Heard(uint64_t number, const std::vector<LimitPart>& parts, TimePoint now) {
  if (number != number_) return false;
  bool gave_up = false;
  for (const LimitPart& answer : parts) {
    const auto found = classes_.find(answer.class_id);
    if (found == classes_.end()) continue;
    Class& known = found->second;
    gave_up = gave_up || answer.part < known.PartAt(now) - kMuch;
    known.part = answer.part;
    known.equal = answer.equal;
    known.lasts_until = known.told_at + kPartLasts;
    known.heard = known.told;
    known.heard_at = known.told_at;
  }
  return gave_up;
}

}  // namespace weir
