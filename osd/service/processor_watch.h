// What the pipelines of an OSD hear of this machine's processors.
#pragma once

#include "osd/io/dispatcher.h"

namespace weir::osd {

// Empty where the kernel does not count pressure.
Dispatcher::Processors WatchThisMachine();

}  // namespace weir::osd
