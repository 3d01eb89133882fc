#include "tools/cli/starter.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

namespace weir::cli {
namespace {

int held_by = -1;  // the read end, which programs that are started inherit

bool IsPipe(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

void EndWithStarter(int fd) {
  pollfd end{fd, POLLIN, 0};
  while (poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
  const bool let_go = (end.revents & POLLIN) != 0;
  close(fd);
  if (!let_go) kill(getpid(), SIGTERM);
}

}  // namespace

Result<Leash> Leash::Hold() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "cannot make a pipe");
  held_by = ends[0];
  return Leash(ends[1]);
}

Leash::Leash(Leash&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Leash::~Leash() {
  if (fd_ < 0) return;
  close(fd_);
  close(std::exchange(held_by, -1));
}

void Leash::LetGo() {
  if (fd_ < 0) return;
  // An empty pipe takes a byte.
  while (write(fd_, "+", 1) < 0 && errno == EINTR) {
  }
  close(std::exchange(fd_, -1));
  close(std::exchange(held_by, -1));
}

int HeldByFd() {
  return held_by;
}

Starter Starter::Take() {
  const char* const text = getenv(kStarterVariable);
  if (text == nullptr) return Starter(-1);
  char* end = nullptr;
  const long fd = strtol(text, &end, 10);
  const bool is_number = end != text && *end == '\0';
  unsetenv(kStarterVariable);
  if (!is_number || fd <= STDERR_FILENO || !IsPipe(static_cast<int>(fd))) return Starter(-1);
  fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
  return Starter(static_cast<int>(fd));
}

void Starter::Watch() {
  if (fd_ < 0) return;
  // No signal is for that thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(EndWithStarter, std::exchange(fd_, -1)).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace weir::cli
