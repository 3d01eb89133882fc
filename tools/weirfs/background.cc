#include "tools/weirfs/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "tools/cli/exit_code.h"

namespace weir::weirfs {
namespace {

// Reads what the other process announces: its exit code as one byte, then the error's text.
[[noreturn]] void WaitAndExit(int fd, pid_t child) {
  std::string words;
  char chunk[4096];
  for (;;) {
    const ssize_t got = read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    words.append(chunk, static_cast<size_t>(got));
  }
  if (words.empty()) {
    int status = 0;
    waitpid(child, &status, 0);
    fmt::print(stderr, "weirfs: the mount's process died before it could serve ({})\n",
               WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                   : fmt::format("exit {}", WEXITSTATUS(status)));
    _exit(static_cast<int>(cli::ExitCode::kFailed));
  }
  if (words.size() > 1) fmt::print(stderr, "weirfs: {}\n", words.substr(1));
  fflush(stderr);
  _exit(words[0]);
}

void Redirect(const std::string& log_path) {
  const int null = open("/dev/null", O_RDWR);
  int log = null;
  if (!log_path.empty()) {
    log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (log < 0) log = null;
  }
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  if (log != null && log > STDERR_FILENO) close(log);
  if (null > STDERR_FILENO) close(null);
}

}  // namespace

Result<Background> Background::Leave(const std::string& log_path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "cannot make a pipe");
  fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return Status::FromErrno(errno, "cannot fork");
  if (child > 0) {
    close(ends[1]);
    WaitAndExit(ends[0], child);
  }
  close(ends[0]);
  setsid();
  Redirect(log_path);
  if (chdir("/") != 0) return Status::FromErrno(errno, "cannot go to /");
  return Background(ends[1]);
}

Background Background::Stay() {
  return Background(-1);
}

Background::Background(Background&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Background::~Background() {
  if (fd_ >= 0) close(fd_);
}

void Background::Announce(const Status& status) {
  const auto code = static_cast<char>(cli::ExitCodeOf(status));
  if (!status.ok()) fmt::print(stderr, "weirfs: {}\n", status.message());
  if (fd_ < 0) return;
  std::string words(1, code);
  if (!status.ok()) words += status.message();
  size_t written = 0;
  while (written < words.size()) {
    const ssize_t put = write(fd_, words.data() + written, words.size() - written);
    if (put < 0 && errno != EINTR) break;  // The caller is gone; nobody is left to tell.
    if (put > 0) written += static_cast<size_t>(put);
  }
  close(std::exchange(fd_, -1));
}

void Background::LeaveItToChild() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void CloseInheritedFiles() {
  close_range(STDERR_FILENO + 1, ~0u, 0);
}

}  // namespace weir::weirfs
