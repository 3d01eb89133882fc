#include "tools/weirfs/stop_signals.h"

#include "client/fuse/mount.h"
#include "common/base/log.h"
#include "tools/weirfs/ending.h"

namespace weir::weirfs {
namespace {

// SIGUSR1 ends the thread.
sigset_t StopSet() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, Ending::kDialled}) {
    sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

void StopSignals::Block() {
  const sigset_t set = StopSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

StopSignals::StopSignals(std::function<void(int signal)> interrupted,
                         std::function<void(client::Mount&)> hand_over, Ending* ending)
    : interrupted_(std::move(interrupted)),
      hand_over_(std::move(hand_over)),
      ending_(ending),
      thread_([this] { Run(); }) {}

StopSignals::~StopSignals() {
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

void StopSignals::Mounting() {
  const std::lock_guard lock(mutex_);
  mounting_ = true;
}

void StopSignals::Mounted(client::Mount* mount) {
  const std::lock_guard lock(mutex_);
  mount_ = mount;
  if (stop_ && mount_ != nullptr) mount_->Stop();
}

void StopSignals::Run() {
  const sigset_t set = StopSet();
  for (int signal = 0; sigwait(&set, &signal) == 0 && signal != SIGUSR1;) Take(signal);
}

void StopSignals::Take(int signal) {
  if (signal == Ending::kDialled) return ending_->Accept();
  const std::lock_guard lock(mutex_);
  if (signal == SIGUSR2) {
    if (mount_ != nullptr && hand_over_) hand_over_(*mount_);
    return;
  }
  if (!mounting_) interrupted_(signal);
  WEIR_LOG_INFO("signal {}: unmounting", signal);
  stop_ = true;
  if (mount_ != nullptr) mount_->Stop();
}

}  // namespace weir::weirfs
