// What OSDs and the MDS say of the flows of a class: their messages, names for people, and sums
// over several disks. Pure.
#pragma once

#include <string>

#include "common/base/result.h"
#include "common/qos/flow_meter.h"

namespace weir {

namespace wire {
class ClassLoadReply;
class FlowStats;
class FlowsOfClass;
}  // namespace wire

void ToWire(const FlowMeter::Report& report, wire::FlowsOfClass* out);

// kNotSupported: the MDS has not seen that flows were asked for, as it is of a version before.
Status CheckFlowsAreTold(const wire::ClassLoadReply& load);

// "uid 1001", "cgroup /system.slice/a.service", "pid 4711 (uid 1001)" of an opener; "the mount"
// where it asks of its own accord.
std::string FlowName(const wire::FlowStats& flow);
// It waits for each answer before it asks again, mostly.
bool IsMostlyLight(const wire::FlowStats& flow);

// Of the sum at most kFlowsTold users and openers stay. Who is among the first of one disk only
// counts with what he had there.
void AddFlows(const wire::FlowsOfClass& one, wire::FlowsOfClass* sum);

}  // namespace weir
