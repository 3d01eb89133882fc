// Schedule: some lives of one disk, from one seed. In each a store is opened and worked on while
// the disk misbehaves, until the power fails or the store is closed; then the checker looks at the
// disk, the store is opened again, and what it holds is compared with a trivial store in memory.
//
// RocksDB's own threads make the exact order of device requests differ from run to run; the
// property must hold wherever a fault hits, so a seed names a workload and a rough place.
#pragma once

#include <cstdint>
#include <string>

#include "tests/crash/planted_bug.h"

namespace weir::osd::testing {

struct ScheduleOptions {
  uint64_t seed = 0;
  Bug bug = Bug::kNone;
};

struct ScheduleOutcome {
  std::string wrong;  // empty: all is well
  uint64_t operations = 0, acknowledged = 0;
};

ScheduleOutcome RunSchedule(const ScheduleOptions& options);

}  // namespace weir::osd::testing
