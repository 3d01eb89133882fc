#include "client/remote/mount_meter.h"

#include <algorithm>

namespace weir::client {

void MountMeter::Spend(Class* one, TimePoint now) {
  const auto passed = static_cast<uint64_t>(std::max<int64_t>(0, (now - one->since).count()));
  one->since = std::max(one->since, now);
  if (one->queued + one->flying + one->parked == 0) return;
  if (one->queued > 0 && one->held_by_limit) {
    one->times.limit_ns += one->queued * passed;
    one->times.limited_ns += passed;
  } else {
    one->times.window_ns += one->queued * passed;
  }
  one->times.network_ns += one->parked * passed;
  one->times.active_ns += passed;
}

MountMeter::Class& MountMeter::Advance(ClassId id, TimePoint now) {
  Class& one = classes_[id];
  Spend(&one, now);
  return one;
}

void MountMeter::Queued(ClassId id, TimePoint now) {
  ++Advance(id, now).queued;
}

void MountMeter::Dropped(ClassId id, uint64_t count, TimePoint now) {
  Advance(id, now).queued -= count;
}

void MountMeter::Sent(ClassId id, TimePoint now) {
  Class& one = Advance(id, now);
  --one.queued;
  ++one.flying;
}

void MountMeter::SetHeldByLimit(ClassId id, bool held, TimePoint now) {
  const auto known = classes_.find(id);
  if (known == classes_.end()) return;  // nothing waits
  Spend(&known->second, now);
  known->second.held_by_limit = held;
}

void MountMeter::Back(ClassId id, TimePoint now) {
  --Advance(id, now).flying;
}

void MountMeter::Parked(ClassId id, TimePoint now) {
  ++Advance(id, now).parked;
}

void MountMeter::Unparked(ClassId id, TimePoint now) {
  --Advance(id, now).parked;
}

void MountMeter::Lost(ClassId id, Duration away) {
  classes_[id].times.network_ns += static_cast<uint64_t>(away.count());
}

void MountMeter::Answered(ClassId id, uint64_t bytes, Duration away, Duration server) {
  MountClassTimes& times = classes_[id].times;
  ++times.ops;
  times.bytes += bytes;
  times.network_ns += static_cast<uint64_t>(std::max<int64_t>(0, (away - server).count()));
}

std::map<ClassId, MountClassTimes> MountMeter::Times(TimePoint now) {
  std::map<ClassId, MountClassTimes> all;
  for (auto& [id, one] : classes_) {
    Spend(&one, now);
    all[id] = one.times;
  }
  return all;
}

}  // namespace weir::client
