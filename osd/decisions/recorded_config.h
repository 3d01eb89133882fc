// What operators set, as a recording keeps it.
#pragma once

#include "common/base/result.h"
#include "common/qos/qos_config.h"
#include "common/wire/recording.pb.h"

namespace weir::osd {

wire::Recording::Config ToRecorded(const SchedulerConfig& config);
wire::Recording::Class ToRecorded(const ClassSpec& spec);
// kInvalid names a word that does not exist.
Result<SchedulerConfig> FromRecorded(const wire::Recording::Config& message);
Result<ClassSpec> FromRecorded(const wire::Recording::Class& message);

}  // namespace weir::osd
