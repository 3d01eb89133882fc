#include "common/reactor/watchdog.h"

#include "common/base/service_manager.h"

namespace weir {

Watchdog::Watchdog(Loop& loop, Clock& clock, std::optional<Duration> alive_every)
    : loop_(loop), clock_(clock), every_(alive_every) {
  if (every_) loop_.Post([this] { Tell(); });
}

Watchdog::~Watchdog() {
  if (every_) RunInLoopAndWait(loop_, [this] { loop_.CancelTimer(timer_); });
}

void Watchdog::Tell() {
  ServiceManager::Alive();
  timer_ = loop_.RunAt(clock_.Now() + *every_, [this] { Tell(); });
}

}  // namespace weir
