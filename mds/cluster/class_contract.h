// What a request to make or change a class says about its contracts: a latency bound, a virtual
// disk. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "common/base/result.h"
#include "common/placement/cluster_map.h"
#include "common/wire/mds.pb.h"
#include "mds/cluster/admission.h"

namespace weir::mds {

// Changes `spec` as the request says; kInvalid names what is out of range or missing.
Status ApplyContract(const wire::SetClassRequest& request, ClassSpec* spec);

// The contracts of `now` that `before` did not have, or not like this: to be admitted anew.
std::vector<Wanted> NewContracts(const ClassSpec& before, const ClassSpec& now);

// `info` as an answer shows it: with the most that the class books on one OSD.
void ShowBooking(const ClusterMap& map, const ClassSpec& spec, wire::ClassInfo* info);

}  // namespace weir::mds
