// Leash: what a program starts ends with it, even by SIGKILL, until it lets go. Starter: the other
// end, in the programs that are started.
//
// A pipe tells: whoever was started reads it. A byte there says that all is well, its end without
// one that the starter has died. The byte stays in the pipe, so that any number may see it.
#pragma once

#include "common/base/result.h"

namespace weir::cli {

// Threads: one, the one that starts programs.
class Leash {
 public:
  // From now on what StartDaemon and RunLogged start is held.
  static Result<Leash> Hold();
  // All that were started stay.
  void LetGo();
  ~Leash();
  Leash(Leash&& other) noexcept;
  Leash& operator=(Leash&&) = delete;

 private:
  explicit Leash(int fd) : fd_(fd) {}
  int fd_;  // the write end; -1: let go
};

// How a program that is started knows its end of the pipe; -1: nobody is held.
inline constexpr char kStarterVariable[] = "WEIR_STARTER_FD";
int HeldByFd();

class Starter {
 public:
  // Who started this process, as the environment says; nobody, if it says nothing. It is not handed
  // on to what this process starts. Before threads.
  static Starter Take();
  // From now on, in this process, SIGTERM comes when the starter dies before it lets go.
  void Watch();
  [[nodiscard]] int fd() const { return fd_; }  // -1: nobody

 private:
  explicit Starter(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace weir::cli
