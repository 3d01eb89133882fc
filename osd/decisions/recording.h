// Recording: the events of one scheduler in a small file (common/wire/recording.proto says how),
// with inputs, decisions and hints of the scheduler's API apart. tests/decisions holds the ones
// that a change of the scheduler is compared with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "osd/decisions/event.h"

namespace weir::osd {

inline constexpr std::string_view kRecordingHead = "weirfs recording 1\n";

// The same events give the same bytes. Replaces the file.
Status SaveRecording(const std::string& path, const std::vector<Event>& events);
// kNotFound, or kBadMessage for what is no recording, is cut off, or contradicts itself (a request
// that completes and never started): what comes out can be replayed by anybody.
Result<std::vector<Event>> LoadRecording(const std::string& path);
// Whether the file begins as a recording does.
bool IsRecording(const std::string& path);

}  // namespace weir::osd
