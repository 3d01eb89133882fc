// Processes that tools start and stop: told apart by pid and start time, so that a recycled pid is
// never taken for the one we knew.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::cli {

struct ProcessId {
  pid_t pid = 0;            // 0: none
  uint64_t start_time = 0;  // in clock ticks since boot, as /proc/PID/stat has it

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

// The process of that pid as it is now; pid 0 when there is none, or only its zombie.
ProcessId Identify(pid_t pid);
// True while exactly that process lives.
bool IsAlive(const ProcessId& process);
// Does nothing when it is not alive any more.
void Signal(const ProcessId& process, int signal);
// False when it still lives after `timeout`. Reaps it when it is a child of ours.
bool WaitUntilGone(const ProcessId& process, Duration timeout);

// Starts a daemon of its own session: stdin empty, stdout and stderr appended to `log_path`.
Result<ProcessId> StartDaemon(const std::vector<std::string>& command, const std::string& log_path);
// From here on SIGINT, SIGTERM and SIGHUP do not end this process but what RunLogged runs, and
// Interrupted tells the number of the last one; 0: none came.
void CatchSignals();
int Interrupted();
// Runs a program to its end with its output appended to `log_path` (empty: thrown away); the exit
// status, 128 + signal when it was killed, 127 when it could not be started.
int RunLogged(const std::vector<std::string>& command, const std::string& log_path);
inline int RunQuietly(const std::vector<std::string>& command) {
  return RunLogged(command, {});
}

// The same with our own stdin, stdout and stderr.
int RunAttached(const std::vector<std::string>& command);

// The directory of the running program, where its siblings are.
std::string OwnDirectory();

}  // namespace weir::cli
