// class_times.h to and from its messages, whose times are in microseconds.
#pragma once

#include "common/qos/blame.h"
#include "common/qos/class_times.h"

namespace weir::wire {
class MountClassTimes;
class OsdClassTimes;
class WhyReply;
}  // namespace weir::wire

namespace weir {

void ToWire(ClassId id, const OsdClassTimes& times, wire::OsdClassTimes* message);
void ToWire(ClassId id, const MountClassTimes& times, wire::MountClassTimes* message);
OsdClassTimes FromWire(const wire::OsdClassTimes& message);
MountClassTimes FromWire(const wire::MountClassTimes& message);
void ToWire(ClassId id, const Lately& lately, wire::WhyReply* message);
Lately FromWire(const wire::WhyReply& message);

}  // namespace weir
