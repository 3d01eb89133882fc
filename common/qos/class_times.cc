#include "common/qos/class_times.h"

#include <algorithm>

namespace weir {
namespace {

constexpr uint64_t OsdClassTimes::*kOsdFields[] = {
    &OsdClassTimes::ops,
    &OsdClassTimes::bytes,
    &OsdClassTimes::limit_ns,
    &OsdClassTimes::turn_ns,
    &OsdClassTimes::rate_ns,
    &OsdClassTimes::pace_ns,
    &OsdClassTimes::owed_ns,
    &OsdClassTimes::device_ns,
    &OsdClassTimes::crowd_ns,
    &OsdClassTimes::turn_own_bytes,
    &OsdClassTimes::turn_others_bytes,
    &OsdClassTimes::limited_ns,
    &OsdClassTimes::active_ns,
};
constexpr uint64_t MountClassTimes::*kMountFields[] = {
    &MountClassTimes::ops,       &MountClassTimes::bytes,      &MountClassTimes::window_ns,
    &MountClassTimes::limit_ns,  &MountClassTimes::network_ns, &MountClassTimes::limited_ns,
    &MountClassTimes::active_ns,
};

}  // namespace

OsdClassTimes& OsdClassTimes::operator+=(const OsdClassTimes& other) {
  for (const auto field : kOsdFields) this->*field += other.*field;
  return *this;
}

OsdClassTimes& OsdClassTimes::operator-=(const OsdClassTimes& older) {
  for (const auto field : kOsdFields) this->*field -= std::min(this->*field, older.*field);
  return *this;
}

MountClassTimes& MountClassTimes::operator+=(const MountClassTimes& other) {
  for (const auto field : kMountFields) this->*field += other.*field;
  return *this;
}

MountClassTimes& MountClassTimes::operator-=(const MountClassTimes& older) {
  for (const auto field : kMountFields) this->*field -= std::min(this->*field, older.*field);
  return *this;
}

bool FreshRows::IsFresh(ClassId id, uint64_t active_ns, TimePoint now) {
  Seen& seen = seen_[id];
  if (seen.active_ns != active_ns) seen = {active_ns, now};
  return active_ns > 0 && now - seen.changed < kKeep;
}

}  // namespace weir
