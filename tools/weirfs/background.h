// Background: how weirfs leaves its caller. The first process waits until the mount is usable or
// has failed; the one that stays has none of the caller's files, and then a session of its own.
// Before, it stays in the caller's process group: to a directory that systemd mounts at first use
// the kernel lets nobody else meanwhile, and whoever mounts there would wait for himself.
//
// Threads: Leave before any thread starts.
#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"

namespace weir::weirfs {

class Background {
 public:
  // Forks. In the caller's process it never returns: it passes the signals on that end a mount, and
  // exits as the other one announces, with the error printed on stderr. In the other it returns
  // once stdin is /dev/null and stdout and stderr are `log_path` (empty: thrown away). Requires:
  // these signals are blocked.
  static Result<Background> Leave(const std::string& log_path);
  // For -f: no fork; Announce does nothing but print an error.
  static Background Stay();

  // Tells the caller how it went, and leaves his session; once.
  void Announce(const Status& status);

  // After another fork: the child announces, and this process leaves the caller's session.
  void LeaveItToChild();

  Background(Background&& other) noexcept;
  Background& operator=(Background&&) = delete;
  ~Background();

 private:
  explicit Background(int fd) : fd_(fd) {}
  int fd_;  // the write end of a pipe; -1 in the foreground
};

// What a signal that came too early is announced as.
Status InterruptedBy(int signal);

// Closes every file that the caller left open beyond the first three, but `one` (-1: none).
void CloseInheritedFiles(int one);

}  // namespace weir::weirfs
