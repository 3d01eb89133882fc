// Other processes as /proc shows them. Each answer may be old when it is given.
#pragma once

#include <sys/types.h>

#include <string>

namespace weir::client {

// SIGKILL is pending: sent, or made of another signal that ends the process.
bool IsBeingKilled(pid_t pid);
// It is on its way out because of a signal: its files are being closed for it.
bool IsEndedBySignal(pid_t pid);
// The first is a thread that lives, and of another process than the second. False also when that
// cannot be known.
bool IsOtherLivingProcess(pid_t thread, pid_t than);
// The path of the program that it runs, if it runs under that uid; empty when that cannot be known.
std::string ExecutableOf(pid_t pid, uid_t uid);

}  // namespace weir::client
