// Records every workload into files of a folder (tests/decisions), and compares two such folders.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "osd/decisions/served.h"

namespace weir::sim {

// <directory>/<name>.rec for each scheduler of each workload, and <directory>/TABLE.md that says
// what they are. Files of the same names are replaced, others stay.
Status RecordAll(const std::string& directory);

// How far what classes were served is apart in the files of both folders that have the same name.
struct Compared {
  std::string name;
  osd::ServedGap gap;
};
// In the order of the names. kNotFound when a file of `recorded` is not in `now`, but for those of
// daemons (live-*), which no workload makes again.
Result<std::vector<Compared>> CompareRecordings(const std::string& recorded,
                                                const std::string& now);

}  // namespace weir::sim
