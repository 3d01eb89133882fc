// Other processes as /proc shows them. Each answer may be old when it is given. In a PID namespace
// of its own weirfs sees those of it at most: the kernel gives others the number 0.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "client/vfs/caller.h"

namespace weir::client {

// Whether it has a number here, and /proc is of this namespace.
bool SeesProcess(pid_t pid);
// SIGKILL is pending: sent, or made of another signal that ends the process.
bool IsBeingKilled(pid_t pid);
// Some signal is pending that the thread neither blocks nor ignores.
bool IsSignalled(pid_t thread);
// It is on its way out because of a signal: its files are being closed for it.
bool IsEndedBySignal(pid_t pid);
// The first is a thread that lives, and of another process than the second. False also when that
// cannot be known.
bool IsOtherLivingProcess(pid_t thread, pid_t than);
// A thread of this process waits in the kernel for what no signal ends. True also when that cannot
// be known.
bool WaitsInKernel(pid_t thread);
// The number of the process that the thread belongs to; 0 when that cannot be known.
pid_t ThreadGroupOf(pid_t thread);
// The path of the program that it runs, if it runs under that uid; empty when that cannot be known.
std::string ExecutableOf(pid_t pid, uid_t uid);
// The path of the cgroup (v2) that it is in, likewise.
std::string CgroupOf(pid_t pid, uid_t uid);
// From /proc/PID/cgroup; empty: it names none of v2. Bytes that are not printable ASCII are \xNN.
std::string ParseCgroup(const std::string& text);
// Groups and capabilities of the thread, if it acts under those ids; none when that cannot be
// known.
std::optional<CallerRights> RightsOf(const CallerId& caller);

// What status, uid_map and gid_map of a process say, as files of /proc. None: it acts under other
// ids, or the text is not understood.
std::optional<CallerRights> ParseRights(const CallerId& caller, const std::string& status,
                                        const std::string& uid_map, const std::string& gid_map);

}  // namespace weir::client
