// What OSDs say of the flows of a class: names for people, and sums over several disks. Pure.
#pragma once

#include <string>

namespace weir {

namespace wire {
class FlowStats;
class FlowsOfClass;
}  // namespace wire

// "uid 1001", "cgroup /system.slice/a.service", "pid 4711 (uid 1001)" of an opener.
std::string FlowName(const wire::FlowStats& flow);
// It waits for each answer before it asks again, mostly.
bool IsMostlyLight(const wire::FlowStats& flow);

// Of the sum at most kFlowsTold users and openers stay. Who is among the first of one disk only
// counts with what he had there.
void AddFlows(const wire::FlowsOfClass& one, wire::FlowsOfClass* sum);

}  // namespace weir
