#include "common/base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION  // it would be this file, of all lines
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace weir {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"trace", "debug", "info",
                                                    "warn",  "error", "off"};

std::mutex mutex;
std::shared_ptr<spdlog::logger> current;  // null: the first message makes one for stderr
std::string program;
bool to_journal = false;
std::vector<LogField> always;
thread_local std::vector<LogField> noted;

std::shared_ptr<spdlog::logger> Make(const LogOptions& options) {
  spdlog::sink_ptr sink;
  if (options.file.empty()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
  }
  auto logger = std::make_shared<spdlog::logger>(options.program, std::move(sink));
  logger->set_level(spdlog::level::trace);  // LogEnabled has decided already
  logger->flush_on(spdlog::level::info);
  logger->set_pattern(options.program.empty() ? "%Y-%m-%dT%H:%M:%S.%e %L %v"
                                              : "%Y-%m-%dT%H:%M:%S.%e %L %n: %v");
  return logger;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::err;
}

bool StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  if (stream == nullptr || fstat(STDERR_FILENO, &info) != 0) return false;
  return fmt::format("{}:{}", info.st_dev, info.st_ino) == stream;
}

// As syslog(3) counts.
int PriorityOf(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
    case LogLevel::kDebug:
      return 7;
    case LogLevel::kInfo:
      return 6;
    case LogLevel::kWarn:
      return 4;
    case LogLevel::kError:
    case LogLevel::kOff:
      break;
  }
  return 3;
}

bool SendToJournal(LogLevel level, std::string_view message, const std::vector<LogField>& fields) {
  std::vector<std::string> texts = {fmt::format("MESSAGE={}", message),
                                    fmt::format("PRIORITY={}", PriorityOf(level))};
  if (!program.empty()) texts.push_back("SYSLOG_IDENTIFIER=" + program);
  const auto add = [&texts](const LogField& field) {
    texts.push_back(fmt::format("{}={}", field.name, field.value));
  };
  std::for_each(always.begin(), always.end(), add);
  std::for_each(fields.begin(), fields.end(), add);
  std::vector<iovec> parts;
  parts.reserve(texts.size());
  for (std::string& text : texts) parts.push_back({text.data(), text.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

// Null: a log may lie there. Images of disks begin with zeros, or have some soon.
const char* WhyNoLog(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return nullptr;
  if (S_ISBLK(info.st_mode)) return "it is a disk";
  if (!S_ISREG(info.st_mode)) return nullptr;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  std::array<char, 4096> head{};
  const ssize_t size = read(fd, head.data(), head.size());
  close(fd);
  const bool text = size <= 0 || memchr(head.data(), '\0', static_cast<size_t>(size)) == nullptr;
  return text ? nullptr : "it holds something else than text";
}

// spdlog would make the folders, too, of a path that was mistyped.
Status CheckFile(const std::string& path) {
  if (path.empty()) return Status::Ok();
  WEIR_ASSIGN_OR_RETURN(const int fd, OpenLogFile(path));
  close(fd);
  return Status::Ok();
}

}  // namespace

Result<int> OpenLogFile(const std::string& path) {
  const char* why = WhyNoLog(path);
  const int fd =
      why != nullptr ? -1 : open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd >= 0) return fd;
  if (why == nullptr) why = strerror(errno);
  return Status(ErrorCode::kIo, "cannot log to '" + path + "': " + why);
}

std::atomic<LogLevel> log_internal::level{LogLevel::kInfo};

void log_internal::Note(const LogField& field) {
  noted.push_back(field);
}

void log_internal::Write(LogLevel level, std::string_view message) {
  const std::vector<LogField> fields = std::exchange(noted, {});
  std::shared_ptr<spdlog::logger> logger;
  {
    const std::lock_guard lock(mutex);
    if (to_journal && SendToJournal(level, message, fields)) return;
    if (current == nullptr) current = Make({});
    logger = current;
  }
  logger->log(ToSpdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

void SetLogField(LogField field) {
  const std::lock_guard lock(mutex);
  always.push_back(std::move(field));
}

Result<LogLevel> ParseLogLevel(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<LogLevel>(i);
  }
  return {ErrorCode::kInvalid, "'" + std::string(text) +
                                   "' is no log level; there are trace, debug, info, warn, error "
                                   "and off"};
}

void SetLogLevel(LogLevel level) {
  log_internal::level = level;
}

Status InitLogging(const LogOptions& options) {
  WEIR_RETURN_IF_ERROR(CheckFile(options.file));
  std::shared_ptr<spdlog::logger> logger;
  try {
    logger = Make(options);
  } catch (const spdlog::spdlog_ex& error) {
    return {ErrorCode::kIo, "cannot log to '" + options.file + "': " + error.what()};
  }
  const std::lock_guard lock(mutex);
  current = std::move(logger);
  program = options.program;
  to_journal = options.file.empty() && (options.to_journal || StderrIsJournal());
  log_internal::level = options.level;
  return Status::Ok();
}

}  // namespace weir
