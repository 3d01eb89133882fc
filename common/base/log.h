// Logging: WEIR_LOG_INFO("osd.{} joined at {}", LogOsd(id), endpoint). One line per message, with
// time, level and the program's name, to stderr or a file; to the journal where systemd has
// connected stderr to it (JOURNAL_STREAM, systemd.exec(5)): then with a priority, and OSD=, CLASS=
// and CLIENT= as fields of their own, to be looked for.
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
  bool to_journal = false;  // though nobody connected stderr with it; nothing where there is none
};
// Replaces what was set before. The error names the file that cannot be opened.
Status InitLogging(const LogOptions& options);
void SetLogLevel(LogLevel level);
// Opens a file to append to, made if it is missing. Refuses what no log may lie in: directories,
// disks, files that hold something else than text.
Result<int> OpenLogFile(const std::string& path);

// A value of a message that is a field in the journal, too. Only as an argument of the macros.
struct LogField {
  const char* name;
  std::string value;
};
inline LogField LogOsd(uint32_t id) {
  return {"OSD", std::to_string(id)};
}
inline LogField LogClass(std::string_view name) {
  return {"CLASS", std::string(name)};
}
inline LogField LogClient(std::string_view name) {
  return {"CLIENT", std::string(name)};
}
// All later messages of this process have it.
void SetLogField(LogField field);

namespace log_internal {
void Note(const LogField& field);  // of the message that this thread is making
extern std::atomic<LogLevel> level;
void Write(LogLevel level, std::string_view message);
}  // namespace log_internal

inline bool LogEnabled(LogLevel level) {
  return level >= log_internal::level.load(std::memory_order_relaxed);
}

}  // namespace weir

template <>
struct fmt::formatter<weir::LogField> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const weir::LogField& field, Context& context) const {
    weir::log_internal::Note(field);
    return fmt::format_to(context.out(), "{}", field.value);
  }
};

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
