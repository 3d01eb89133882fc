// The web page of common/monitor/web, compiled in.
#pragma once

#include <string_view>

namespace weir::monitor {

extern const std::string_view kWebPage;

}  // namespace weir::monitor
