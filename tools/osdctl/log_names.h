// Lines of a log for others to read: without names of files, which are their owners' affair. Pure.
#pragma once

#include <string>
#include <string_view>

namespace weir::osdctl {

// Absolute paths and what stands in quotes become '…', but for what names a part of the cluster:
// devices, files of WeirFS itself, and the quoted names of classes, pools, mounts and endpoints.
std::string WithoutNames(std::string_view text);

}  // namespace weir::osdctl
