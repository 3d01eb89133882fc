#include "common/base/service_manager.h"

#include <systemd/sd-daemon.h>

#include <cstdint>

namespace weir {

void ServiceManager::Ready(const std::string& status) {
  (void)sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
}

void ServiceManager::Says(const std::string& status) {
  (void)sd_notify(0, ("STATUS=" + status).c_str());
}

void ServiceManager::Stopping() {
  (void)sd_notify(0, "STOPPING=1\nSTATUS=ended");
}

void ServiceManager::Alive() {
  (void)sd_notify(0, "WATCHDOG=1");
}

std::optional<Duration> ServiceManager::AliveEvery() {
  uint64_t micros = 0;
  if (sd_watchdog_enabled(0, &micros) <= 0) return std::nullopt;
  return std::chrono::microseconds(micros / 3);
}

}  // namespace weir
