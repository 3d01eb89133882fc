#include "common/placement/times_wire.h"

#include "common/wire/mds.pb.h"
#include "common/wire/times.pb.h"

namespace weir {
namespace {

constexpr uint64_t kMicro = 1000;

}  // namespace

void ToWire(ClassId id, const OsdClassTimes& times, wire::OsdClassTimes* message) {
  message->set_class_id(id.value);
  message->set_ops(times.ops);
  message->set_bytes(times.bytes);
  message->set_limit_us(times.limit_ns / kMicro);
  message->set_turn_us(times.turn_ns / kMicro);
  message->set_rate_us(times.rate_ns / kMicro);
  message->set_pace_us(times.pace_ns / kMicro);
  message->set_owed_us(times.owed_ns / kMicro);
  message->set_device_us(times.device_ns / kMicro);
  message->set_crowd_us(times.crowd_ns / kMicro);
  message->set_turn_own_bytes(times.turn_own_bytes);
  message->set_turn_others_bytes(times.turn_others_bytes);
  message->set_limited_us(times.limited_ns / kMicro);
  message->set_active_us(times.active_ns / kMicro);
}

void ToWire(ClassId id, const MountClassTimes& times, wire::MountClassTimes* message) {
  message->set_class_id(id.value);
  message->set_ops(times.ops);
  message->set_bytes(times.bytes);
  message->set_window_us(times.window_ns / kMicro);
  message->set_limit_us(times.limit_ns / kMicro);
  message->set_network_us(times.network_ns / kMicro);
  message->set_limited_us(times.limited_ns / kMicro);
  message->set_active_us(times.active_ns / kMicro);
}

OsdClassTimes FromWire(const wire::OsdClassTimes& message) {
  return {.turn_ns = message.turn_us() * kMicro,
          .turn_own_bytes = message.turn_own_bytes(),
          .turn_others_bytes = message.turn_others_bytes(),
          .device_ns = message.device_us() * kMicro,
          .active_ns = message.active_us() * kMicro,
          .limited_ns = message.limited_us() * kMicro,
          .ops = message.ops(),
          .bytes = message.bytes(),
          .limit_ns = message.limit_us() * kMicro,
          .rate_ns = message.rate_us() * kMicro,
          .pace_ns = message.pace_us() * kMicro,
          .owed_ns = message.owed_us() * kMicro,
          .crowd_ns = message.crowd_us() * kMicro};
}

MountClassTimes FromWire(const wire::MountClassTimes& message) {
  return {.ops = message.ops(),
          .bytes = message.bytes(),
          .window_ns = message.window_us() * kMicro,
          .limit_ns = message.limit_us() * kMicro,
          .network_ns = message.network_us() * kMicro,
          .limited_ns = message.limited_us() * kMicro,
          .active_ns = message.active_us() * kMicro};
}

void ToWire(ClassId id, const Lately& lately, wire::WhyReply* message) {
  message->set_class_id(id.value);
  for (const OsdLately& osd : lately.osds) {
    auto* out = message->add_osds();
    out->set_osd_id(osd.osd.value);
    out->set_seconds(osd.seconds);
    for (const auto& [class_id, times] : osd.classes) ToWire(class_id, times, out->add_classes());
  }
  for (const MountLately& mount : lately.mounts) {
    auto* out = message->add_mounts();
    out->set_client_name(mount.client);
    out->set_seconds(mount.seconds);
    ToWire(id, mount.times, out->mutable_times());
    out->set_path(static_cast<wire::KernelPath>(mount.path));
  }
}

Lately FromWire(const wire::WhyReply& message) {
  Lately lately;
  for (const auto& osd : message.osds()) {
    OsdLately& one = lately.osds.emplace_back();
    one.osd = OsdId(osd.osd_id());
    one.seconds = osd.seconds();
    for (const auto& row : osd.classes()) one.classes[ClassId(row.class_id())] = FromWire(row);
  }
  for (const auto& mount : message.mounts()) {
    lately.mounts.push_back({mount.client_name(), mount.seconds(), FromWire(mount.times()),
                             ToKernelPath(mount.path())});
  }
  return lately;
}

}  // namespace weir
