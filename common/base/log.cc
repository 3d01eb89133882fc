#include "common/base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

namespace weir {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"trace", "debug", "info",
                                                    "warn",  "error", "off"};

std::mutex mutex;
std::shared_ptr<spdlog::logger> current;  // null: the first message makes one for stderr

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

std::shared_ptr<spdlog::logger> Logger() {
  const std::lock_guard lock(mutex);
  if (current == nullptr) current = Make({});
  return current;
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

void log_internal::Write(LogLevel level, std::string_view message) {
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

Result<LogLevel> ParseLogLevel(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<LogLevel>(i);
  }
  return {ErrorCode::kInvalid, "'" + std::string(text) +
                                   "' is no log level; there are trace, debug, info, warn, error "
                                   "and off"};
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
  log_internal::level = options.level;
  return Status::Ok();
}

}  // namespace weir
