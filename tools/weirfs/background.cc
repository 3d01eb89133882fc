#include "tools/weirfs/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/base/log.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/program.h"

namespace weir::weirfs {
namespace {

// Reads what the other process announces: its exit code as one byte, then the error's text. Signals
// that the caller's terminal sends are meant for that process.
std::string WaitForWords(int fd, pid_t child, int* signalled) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);
  std::string words;
  for (;;) {
    pollfd fds[] = {{fd, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;
    signalfd_siginfo info{};
    if (fds[1].revents != 0 && read(signals, &info, sizeof(info)) == sizeof(info)) {
      *signalled = static_cast<int>(info.ssi_signo);
      kill(child, *signalled);
    }
    if (fds[0].revents == 0) continue;
    char chunk[4096];
    const ssize_t got = read(fd, chunk, sizeof chunk);
    if (got == 0 || (got < 0 && errno != EINTR)) return words;
    if (got > 0) words.append(chunk, static_cast<size_t>(got));
  }
}

std::string HowItEnded(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                             : fmt::format("exit {}", WEXITSTATUS(status));
}

[[noreturn]] void WaitAndExit(int fd, pid_t child) {
  int signalled = 0;
  const std::string words = WaitForWords(fd, child, &signalled);
  if (words.empty()) {
    cli::Say("weirfs", signalled != 0 ? InterruptedBy(signalled).message()
                                      : fmt::format("the mount's process died before it could "
                                                    "serve ({})",
                                                    HowItEnded(child)));
    _exit(static_cast<int>(cli::ExitCode::kFailed));
  }
  if (words.size() > 1) cli::Say("weirfs", words.substr(1));
  _exit(words[0]);
}

void Redirect(int log) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(log < 0 ? null : log, fd);
  if (log > STDERR_FILENO) close(log);
  if (null > STDERR_FILENO) close(null);
}

}  // namespace

Status InterruptedBy(int signal) {
  return {ErrorCode::kCancelled,
          fmt::format("interrupted by SIG{} before the mount was usable", sigabbrev_np(signal))};
}

Result<Background> Background::Leave(const std::string& log_path) {
  int log = -1;
  if (!log_path.empty()) {
    WEIR_ASSIGN_OR_RETURN(log, OpenLogFile(log_path));
  }
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
  Redirect(log);
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
  if (!status.ok()) cli::Say("weirfs", status.message());
  if (fd_ < 0) return;
  setsid();
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
  if (fd_ < 0) return;
  setsid();
  close(std::exchange(fd_, -1));
}

void CloseInheritedFiles(int one) {
  if (one < 0) one = STDERR_FILENO;
  if (one > STDERR_FILENO + 1) {
    close_range(STDERR_FILENO + 1, static_cast<unsigned>(one) - 1, 0);
  }
  close_range(static_cast<unsigned>(one) + 1, ~0u, 0);
}

}  // namespace weir::weirfs
