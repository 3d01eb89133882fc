// What a mount counts, as metrics. Names and meanings: tools/monitoring/README.md. Pure.
#pragma once

#include "client/fuse/mount.h"
#include "common/monitor/metric_page.h"

namespace weir::weirfs {

void AddClientMetrics(const client::Mount::Counters& counters, monitor::MetricPage* page);

}  // namespace weir::weirfs
