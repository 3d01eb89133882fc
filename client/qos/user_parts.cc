#include "client/qos/user_parts.h"

#include <algorithm>
#include <utility>

#include "common/qos/flow_kind.h"

namespace weir::client {

double UserParts::SavedAt(const Part& part, TimePoint now) {
  const double grown = part.saved + part.rate * ToSeconds(now - part.as_of);
  return std::min(grown, part.rate * ToSeconds(kSaved));
}

void UserParts::Set(const Reservation& reservation, size_t osds, TimePoint now) {
  auto before = std::exchange(parts_, {});
  const bool each = reservation.scope == ReservationScope::kOsd;
  for (const UserPart& user : reservation.users) {
    const uint64_t key = KeyOf({.kind = FlowKind::kUser, .uid = user.uid}).user;
    Part& part = parts_[key];
    part.as_of = now;
    if (const auto known = before.find(key); known != before.end()) {
      part.saved = SavedAt(known->second, now);
    }
    part.rate = static_cast<double>(user.bytes_per_s) *
                static_cast<double>(each ? std::max<size_t>(osds, 1) : 1);
  }
}

FlowOrder::Item* UserParts::Owed(const FlowOrder& flows, TimePoint now) const {
  FlowOrder::Item* owed = nullptr;
  double most = 0;
  for (const auto& [user, part] : parts_) {
    const double seconds = SavedAt(part, now) / std::max(1.0, part.rate);
    if (seconds <= most) continue;
    FlowOrder::Item* const item = flows.FirstOf(user);
    if (item == nullptr) continue;
    owed = item;
    most = seconds;
  }
  return owed;
}

void UserParts::Sent(uint64_t user, uint64_t bytes, TimePoint now) {
  const auto found = parts_.find(user);
  if (found == parts_.end()) return;
  Part& part = found->second;
  const double saved = SavedAt(part, now);
  if (saved <= 0) return;  // he had it as one of the class
  part.saved = saved - static_cast<double>(bytes);
  part.as_of = now;
}

}  // namespace weir::client
