// Holder: a small process that keeps the kernel's end of a mount open, so that the mount outlives
// the process that serves it. It starts that one as its child, starts another when it dies, and
// replaces itself and it when asked to upgrade. It has no threads, asks nobody, and looks at no
// file of the mount: its child may not be there to answer.
//
// What goes between the two: the child sends the device when it has it, and "ready" when it serves.
// Whoever upgrades asks by a socket of the network namespace named after the mount's device; only
// root and the holder's own user are heard.
// Threads: none may run when Run is called.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::weirfs {

// What the child is given, and a holder of a newer version by the older one.
struct Held {
  int state = -1;      // of client::RecordFile
  int device = -1;     // the kernel's end; -1: nobody has mounted yet
  int link = -1;       // to the holder
  int asker = -1;      // who asked for an upgrade, and hears when it is done; -1: nobody
  std::string number;  // the mount's device number, once there is a device; empty: not known
};
// As the argument of --held, and back.
std::string FormatHeld(const Held& held);
Result<Held> ParseHeld(const std::string& text);
// The words that weirfs was called with, by a person.
std::vector<std::string> WithoutHeld(std::vector<std::string> argv);

// By the child: the mount's device number names the socket for upgrades.
void SendDevice(const Held& held, int device_fd, const std::string& device);
void SendReady(const Held& held);
// Why it cannot hand over.
void SendRefusal(const Held& held, const std::string& why);

// The child ends with it when all is left for a successor.
inline constexpr int kHandedOver = 99;

class Holder {
 public:
  struct Options {
    std::string mountpoint;
    std::string program;            // what an upgrade runs
    std::vector<std::string> argv;  // with which; without --held
    std::string directory;          // and where
    std::function<void()> on_fork;  // in the holder, once the first child runs
  };
  Holder(Options options, const Held& held) : options_(std::move(options)), held_(held) {}

  // Runs `serve` in children until the mount has ended; returns the exit code. Signals that end a
  // mount, and SIGCHLD, are blocked.
  int Run(const std::function<int(const Held&)>& serve);

 private:
  bool StartChild();
  void OnSignal();
  void OnMessage();
  void OnAsker();
  void ListenTo(const std::string& device);
  void BeginUpgrade(int asker);
  void Answer(const std::string& words);
  void End();
  // The child has ended: none when another one runs.
  void Ended(int status);
  void Exec();
  // Whether the program that would run knows how this one keeps its state.
  [[nodiscard]] bool ProgramTakesOver() const;
  [[nodiscard]] bool ChildIsDead() const;
  [[nodiscard]] bool MountIsGone() const;
  bool MayRestart();

  const Options options_;
  Held held_;
  std::function<int(const Held&)> serve_;
  pid_t child_ = -1;
  int link_ = -1;    // to the child
  int listen_ = -1;  // for who asks for an upgrade
  int signals_ = -1;
  bool ready_ = false;
  bool ending_ = false;
  bool upgrading_ = false;
  TimePoint dead_since_ = TimePoint::Max();  // the child, but not all of its threads
  std::deque<TimePoint> restarts_;
  bool done_ = false;
  int code_ = 0;
};

// --upgrade: asks the holder of that mount and waits until a successor serves.
Status AskForUpgrade(const std::string& mountpoint);

}  // namespace weir::weirfs
