// ServiceManager: what a daemon tells systemd of itself (sd_notify(3)): that it serves, that it is
// alive, that it stops. Where no service manager asks (NOTIFY_SOCKET, WATCHDOG_USEC) nothing
// happens.
//
// Threads: any. Errors: none; what cannot be said is not.
#pragma once

#include <optional>
#include <string>

#include "common/base/time.h"

namespace weir {

class ServiceManager {
 public:
  // Serves from now on; `status` is a line for people.
  static void Ready(const std::string& status);
  static void Says(const std::string& status);  // the line alone
  static void Stopping();
  static void Alive();
  // How often it wants to hear Alive: a third of what it waits. None: it does not watch.
  static std::optional<Duration> AliveEvery();
};

}  // namespace weir
