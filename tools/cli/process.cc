#include "tools/cli/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/cli/starter.h"

extern char** environ;

namespace weir::cli {
namespace {

constexpr int kPollMs = 10;

// For a signal handler.
volatile sig_atomic_t interrupted = 0;
volatile sig_atomic_t running = 0;  // the process that RunLogged waits for

constexpr int kCannotStart = 127;

std::vector<char*> ArgumentsOf(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  // NOLINTNEXTLINE(performance-inefficient-vector-operation): one more than the words is reserved
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

// The exit status of a child, as shells have it.
int WaitFor(pid_t pid) {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended < 0) return kCannotStart;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<pid_t> Spawn(const std::vector<std::string>& command, const std::string& log_path,
                    bool own_session) {
  std::vector<char*> arguments = ArgumentsOf(command);
  const char* log = log_path.empty() ? "/dev/null" : log_path.c_str();

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  // Onto itself: that one it inherits.
  const int held_by = HeldByFd();
  if (held_by >= 0) posix_spawn_file_actions_adddup2(&files, held_by, held_by);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  std::string starter = fmt::format("{}={}", kStarterVariable, held_by);
  if (held_by >= 0) variables.push_back(starter.data());
  variables.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // What ends us on a terminal comes to it from us, once; whatever we have blocked.
  const short group = own_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, static_cast<short>(group | POSIX_SPAWN_SETSIGMASK));

  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return Status::FromErrno(error, fmt::format("cannot start {}", command[0]));
  return pid;
}

}  // namespace

ProcessId Identify(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (pid <= 0 || !std::getline(file, line)) return {};
  // The name, in parentheses, may hold anything; behind it come the state and then numbers.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  char state = 'Z';
  fields >> state;
  constexpr int kFieldsBetweenStateAndThreads = 16;
  std::string skipped;
  for (int i = 0; i < kFieldsBetweenStateAndThreads; ++i) fields >> skipped;
  uint64_t threads = 0;
  ProcessId found{.pid = pid};
  fields >> threads >> skipped >> found.start_time;
  // The first thread may be over while others still hold files and locks.
  if ((state == 'Z' || state == 'X') && threads <= 1) return {};
  return found;
}

bool IsAlive(const ProcessId& process) {
  return process.pid > 0 && Identify(process.pid) == process;
}

void Signal(const ProcessId& process, int signal) {
  if (IsAlive(process)) kill(process.pid, signal);
}

bool WaitUntilGone(const ProcessId& process, Duration timeout) {
  const TimePoint end = SystemClock::Get().Now() + timeout;
  while (IsAlive(process)) {
    if (SystemClock::Get().Now() >= end) return false;
    waitpid(process.pid, nullptr, WNOHANG);
    poll(nullptr, 0, kPollMs);
  }
  waitpid(process.pid, nullptr, WNOHANG);
  return true;
}

Result<ProcessId> StartDaemon(const std::vector<std::string>& command,
                              const std::string& log_path) {
  WEIR_ASSIGN_OR_RETURN(const pid_t pid, Spawn(command, log_path, true));
  ProcessId process = Identify(pid);
  // It may have died already; the pid stays ours until it is reaped.
  process.pid = pid;
  return process;
}

void CatchSignals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    interrupted = signal;
    if (running > 0) kill(running, signal);
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

int Interrupted() {
  return interrupted;
}

int RunLogged(const std::vector<std::string>& command, const std::string& log_path) {
  const auto pid = Spawn(command, log_path, false);
  if (!pid.ok()) return kCannotStart;
  running = *pid;
  if (interrupted != 0) kill(*pid, interrupted);  // one that came before it was known
  const int code = WaitFor(*pid);
  running = 0;
  return code;
}

int RunAttached(const std::vector<std::string>& command) {
  std::vector<char*> arguments = ArgumentsOf(command);
  pid_t pid = 0;
  if (posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
    return kCannotStart;
  }
  return WaitFor(pid);
}

std::string OwnDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

}  // namespace weir::cli
