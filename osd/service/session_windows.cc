#include "osd/service/session_windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace weir::osd {

uint64_t SessionWindows::Grant() const {
  const uint64_t share = options_.budget_bytes / std::max<size_t>(1, pairs_.size());
  return std::clamp(share, options_.grant_min, options_.grant_max);
}

SessionWindows::Pair& SessionWindows::Touch(const Key& key, TimePoint now) {
  auto [it, added] = pairs_.try_emplace(key);
  Pair& pair = it->second;
  if (added) {
    pair.granted = options_.start_grant;
    pair.place = by_use_.insert(by_use_.end(), key);
  } else {
    by_use_.splice(by_use_.end(), by_use_, pair.place);
  }
  pair.used = now;
  return pair;
}

void SessionWindows::ForgetIdle(TimePoint now) {
  while (!by_use_.empty()) {
    const Key key = by_use_.front();
    Pair& pair = pairs_.at(key);
    if (pair.used + options_.active_for >= now) return;
    if (pair.in_flight > 0) {  // waits for tokens, and is as active as any
      Touch(key, now);
      continue;
    }
    by_use_.pop_front();
    pairs_.erase(key);
  }
}

Status SessionWindows::Admit(uint64_t session, ClassId class_id, uint64_t bytes, TimePoint now) {
  ForgetIdle(now);
  Pair& pair = Touch({session, class_id}, now);
  const uint64_t grant = std::max(Grant(), pair.granted);
  if (pair.in_flight > 0 && pair.in_flight + bytes > 2 * grant) {
    return {ErrorCode::kBusy,
            fmt::format("{} bytes of class {} are under way for this session, granted are {}: "
                        "send again when some are answered",
                        pair.in_flight, class_id.value, grant)};
  }
  pair.in_flight += bytes;
  in_flight_ += bytes;
  return {};
}

uint64_t SessionWindows::Release(uint64_t session, ClassId class_id, uint64_t bytes, TimePoint now,
                                 bool kept_short) {
  Pair& pair = Touch({session, class_id}, now);
  WEIR_CHECK(pair.in_flight >= bytes, "a request was released twice");
  pair.in_flight -= bytes;
  in_flight_ -= bytes;
  pair.granted = kept_short ? std::min(Grant(), options_.grant_kept_short) : Grant();
  return pair.granted;
}

uint64_t SessionWindows::in_flight_bytes() const {
  return in_flight_;
}

size_t SessionWindows::active() const {
  return pairs_.size();
}

}  // namespace weir::osd
