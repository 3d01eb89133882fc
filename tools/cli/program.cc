#include "tools/cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "tools/cli/exit_code.h"

namespace weir::cli {
namespace {

void OpenStandardFiles() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is the one that open gives.
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) _exit(1);
  }
}

void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// stdio forgets why it could not write all but the last part: what programs print fits at once.
void BufferOutput() {
  static std::array<char, 1 << 16> buffer;
  if (isatty(STDOUT_FILENO) == 0) setvbuf(stdout, buffer.data(), _IOFBF, buffer.size());
}

// Whether all that was printed has gone where stdout leads.
bool Printed(std::string_view program, int error) {
  if (fflush(stdout) != 0 && error == 0) error = errno;
  if (error == 0 && ferror(stdout) == 0) return true;
  Say(program, Status::FromErrno(error == 0 ? EIO : error, "cannot write to stdout").message());
  return false;
}

}  // namespace

int RunProgram(std::string_view program, const std::function<int()>& body) {
  constexpr int kFailed = static_cast<int>(ExitCode::kFailed);
  OpenStandardFiles();
  BufferOutput();
  RaiseFileLimit();
  int code = kFailed;
  int unprinted = 0;
  try {
    code = body();
  } catch (const std::system_error& error) {
    unprinted = error.code().value();
    if (ferror(stdout) == 0) Say(program, fmt::format("unexpected error: {}", error.what()));
  } catch (const std::exception& error) {
    Say(program, fmt::format("unexpected error: {}", error.what()));
  }
  if (ferror(stdout) == 0) unprinted = 0;
  return Printed(program, unprinted) ? code : kFailed;
}

void FlushStdout() {
  if (fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "stdout");
}

void Say(std::string_view program, std::string_view text) {
  const std::string line = fmt::format("{}: {}\n", program, text);
  (void)fputs(line.c_str(), stderr);
}

Status NeedFiles(uint64_t files) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files) return Status::Ok();
  return {ErrorCode::kNoSpace, fmt::format("it may open {} files only and needs {} (ulimit -n {})",
                                           limit.rlim_cur, files, files)};
}

}  // namespace weir::cli
