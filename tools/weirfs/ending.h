// How umount(8) gets to know that all is stored. The kernel tells a FUSE daemon of an unmount when
// umount(2) has returned, and what the daemon holds is stored after that.
//
// Whoever serves a mount listens at a socket whose name begins with the mount's device number.
// Whoever unmounts connects before, is told at the end what came of it, and sees by the socket that
// the process is over. Nobody needs to accept meanwhile: there is no thread for it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::weirfs {

// Of the process that serves.
class Ending {
 public:
  Ending() = default;
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  // Says why in the log when nobody can hear of it.
  void Announce(const std::string& device);
  // The last thing before the process ends, which closes its sockets. Nothing where nobody waits.
  void Tell(const Status& ended);

 private:
  int listen_ = -1;  // -1: not announced, or told
};

// Of who unmounts.
class EndingWait {
 public:
  // Connects to all that serve a mount of that device, as root or `owner`: several where a number
  // was given anew while its last mount is still ending.
  EndingWait(const std::string& device, uid_t owner);
  ~EndingWait();
  EndingWait(const EndingWait&) = delete;
  EndingWait& operator=(const EndingWait&) = delete;

  // Until they have ended. kIo: not all was stored, and why; kTimedOut: they go on; kBusy: they
  // could not be asked.
  Status Wait(Duration patience);

 private:
  std::vector<int> servers_;  // sockets
  bool all_asked_ = true;
};

}  // namespace weir::weirfs
