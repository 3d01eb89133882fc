// The data of an MDS that does not run, checked: the image, its tables, and what they say.
#pragma once

#include <string>

#include "common/base/result.h"
#include "common/fsck/findings.h"

namespace weir::mds {

struct FsckOptions {
  bool deep = false;    // verify every table
  bool repair = false;  // see CheckNamespace
};

// kNotFound: there is no data in the directory; kBusy: an MDS runs on it. Without `repair` nothing
// is written.
Result<CheckReport> FsckMds(const std::string& directory, const FsckOptions& options);

}  // namespace weir::mds
