// StopSignals: SIGTERM, SIGINT and SIGHUP end a mount, whatever it is doing; SIGUSR2 hands it over,
// and Ending's signal says that somebody waits for the end.
//
// Threads: Block in the first thread before any other exists, the rest from that thread; a thread
// of its own waits for the signals.
#pragma once

#include <signal.h>

#include <functional>
#include <mutex>
#include <thread>

namespace weir::client {
class Mount;
}

namespace weir::weirfs {

class Ending;

class StopSignals {
 public:
  // In the calling thread and all that start later, so that the signals reach nobody else.
  static void Block();

  // `interrupted` runs when one comes while nothing is mounted and nothing needs to be undone, be
  // it that an MDS does not answer: it ends the process. `hand_over`: for SIGUSR2; may be empty.
  // `ending` outlives it.
  StopSignals(std::function<void(int signal)> interrupted,
              std::function<void(client::Mount&)> hand_over, Ending* ending);
  ~StopSignals();

  // From now on a signal waits until there is a mount to end.
  void Mounting();
  // There is one: it is stopped by what came meanwhile, and by what comes. Null: it has ended.
  void Mounted(client::Mount* mount);

 private:
  void Run();
  void Take(int signal);

  const std::function<void(int)> interrupted_;
  const std::function<void(client::Mount&)> hand_over_;
  Ending* const ending_;
  std::mutex mutex_;
  bool mounting_ = false;
  bool stop_ = false;
  client::Mount* mount_ = nullptr;
  std::thread thread_;
};

}  // namespace weir::weirfs
