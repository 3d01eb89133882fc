// How umount(8) gets to know that all is stored. The kernel tells a FUSE daemon of an unmount when
// umount(2) has returned, and what the daemon holds is stored after that.
//
// Whoever serves a mount listens at a socket whose name begins with the mount's device number.
// Whoever unmounts connects before, is told at the end what came of it, and sees by the socket that
// the process is over. Anybody may find that socket: only root and the user who serves are heard.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::weirfs {

// Of the process that serves. Threads: any.
class Ending {
 public:
  static constexpr int kDialled = SIGIO;

  Ending() = default;
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  // From now on kDialled comes when somebody connects; Requires: every thread blocks it. Says why
  // in the log when nobody can hear of the end.
  void Announce(const std::string& device);
  // On kDialled, as only so many can wait for it.
  void Accept();
  // The last thing before the process ends, which closes its sockets. Nothing where nobody waits.
  void Tell(const Status& ended);

 private:
  void AcceptAll();

  std::mutex mutex_;
  int listen_ = -1;         // -1: not announced, or told
  std::vector<int> peers_;  // who may hear of it
};

// Of who unmounts.
class EndingWait {
 public:
  // Connects to all that serve a mount of that device, as root or `owner`: several where a number
  // was given anew while its last mount is still ending.
  EndingWait(std::string device, uid_t owner);
  ~EndingWait();
  EndingWait(const EndingWait&) = delete;
  EndingWait& operator=(const EndingWait&) = delete;

  // To who serves it since, too: after umount(2), during which another process may have gone on.
  void LookAgain();
  // Until they have ended. kIo: not all was stored, and why; kTimedOut: they go on.
  Status Wait(Duration patience);

 private:
  bool Ask(const std::string& name);

  const std::string device_;
  const uid_t owner_;
  std::set<std::string> asked_;
  std::vector<int> servers_;  // sockets
};

}  // namespace weir::weirfs
