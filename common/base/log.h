// Logging: WEIR_LOG_INFO("osd.{} joined at {}", id, endpoint). One line per message, with time,
// level and the program's name, to stderr or a file.
//
// A level that is off costs one relaxed load; its arguments are not evaluated. Threads: all of it
// from any thread. Before InitLogging: level info, to stderr.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace weir {

enum class LogLevel : uint8_t { kTrace, kDebug, kInfo, kWarn, kError, kOff };

// trace, debug, info, warn, error, off; kInvalid lists them.
Result<LogLevel> ParseLogLevel(std::string_view text);

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  std::string file;  // appended to; empty: stderr
  std::string program;
};
// Replaces what was set before. The error names the file that cannot be opened.
Status InitLogging(const LogOptions& options);
// Opens a file to append to, made if it is missing. Refuses what no log may lie in: directories,
// disks, files that hold something else than text.
Result<int> OpenLogFile(const std::string& path);

namespace log_internal {
extern std::atomic<LogLevel> level;
void Write(LogLevel level, std::string_view message);
}  // namespace log_internal

inline bool LogEnabled(LogLevel level) {
  return level >= log_internal::level.load(std::memory_order_relaxed);
}

}  // namespace weir

#define WEIR_LOG(log_level, ...)                                          \
  do {                                                                    \
    if (::weir::LogEnabled(log_level)) [[unlikely]]                       \
      ::weir::log_internal::Write(log_level, ::fmt::format(__VA_ARGS__)); \
  } while (false)
#define WEIR_LOG_TRACE(...) WEIR_LOG(::weir::LogLevel::kTrace, __VA_ARGS__)
#define WEIR_LOG_DEBUG(...) WEIR_LOG(::weir::LogLevel::kDebug, __VA_ARGS__)
#define WEIR_LOG_INFO(...) WEIR_LOG(::weir::LogLevel::kInfo, __VA_ARGS__)
#define WEIR_LOG_WARN(...) WEIR_LOG(::weir::LogLevel::kWarn, __VA_ARGS__)
#define WEIR_LOG_ERROR(...) WEIR_LOG(::weir::LogLevel::kError, __VA_ARGS__)
