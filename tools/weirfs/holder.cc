#include "tools/weirfs/holder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "client/takeover/record_file.h"
#include "common/base/log.h"
#include "tools/cli/mounts.h"
#include "tools/weirfs/holder_link.h"

namespace weir::weirfs {
namespace {

constexpr int kLookMs = 500;
constexpr Duration kDeadFor = std::chrono::seconds(1);
// A request that kills each process that gets it shall not do so for ever.
constexpr size_t kMostRestarts = 10;
constexpr Duration kRestartsWithin = std::chrono::minutes(1);
constexpr Duration kSoonDead = std::chrono::seconds(1);
constexpr int kPauseMs = 100;

sigset_t EndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

void Close(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void KeepOverExec(int fd) {
  if (fd >= 0) fcntl(fd, F_SETFD, 0);
}

std::string HowItEnded(int status) {
  return WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                             : fmt::format("ended with code {}", WEXITSTATUS(status));
}

}  // namespace

int Holder::Run(const std::function<int(const Held&)>& serve) {
  serve_ = serve;
  const sigset_t set = EndingSignals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0 || !StartChild()) return 1;
  if (options_.on_fork) options_.on_fork();
  while (!done_) {
    pollfd fds[] = {{signals_, POLLIN, 0}, {link_, POLLIN, 0}, {listen_, POLLIN, 0}};
    poll(fds, std::size(fds), kLookMs);
    // Before the child's end is heard: what it said earlier.
    OnMessage();
    OnAsker();
    OnSignal();
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);  // maybe one that was given up earlier
    if (ended == child_) {
      OnMessage();
      Ended(status);
    } else if (!ChildIsDead()) {
      dead_since_ = TimePoint::Max();
    } else if (dead_since_ == TimePoint::Max()) {
      dead_since_ = SystemClock::Get().Now();
    } else if (SystemClock::Get().Now() - dead_since_ > kDeadFor) {
      // A thread of it waits in the kernel for what only a successor can answer.
      Ended(SIGKILL);
    }
  }
  if (held_.asker >= 0) Answer("the mount has ended");
  return code_;
}

bool Holder::StartChild() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  Close(&link_);
  link_ = ends[0];
  ready_ = false;
  dead_since_ = TimePoint::Max();
  fflush(nullptr);
  child_ = fork();
  if (child_ == 0) {
    Close(&link_);
    Close(&listen_);
    Close(&signals_);
    Close(&held_.asker);
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &ended, nullptr);
    held_.link = ends[1];
    _exit(serve_(held_));
  }
  close(ends[1]);
  return child_ > 0;
}

// A leader that ended while a thread of it cannot.
bool Holder::ChildIsDead() const {
  std::ifstream stat(fmt::format("/proc/{}/stat", child_));
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'Z';
}

bool Holder::MountIsGone() const {
  pollfd device{held_.device, 0, 0};
  return poll(&device, 1, 0) == 1 && (device.revents & POLLERR) != 0;
}

void Holder::OnSignal() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) End();
  }
}

void Holder::End() {
  ending_ = true;
  if (ready_) {
    kill(child_, SIGTERM);
    return;
  }
  // It may wait for an MDS that does not come.
  kill(child_, SIGKILL);
  if (held_.device < 0) return;
  if (const Status status = cli::DetachMount(options_.mountpoint); !status.ok()) {
    WEIR_LOG_WARN("cannot unmount: {}", status.message());
  }
}

void Holder::OnMessage() {
  for (;;) {
    const ChildMessage message = ReceiveFromChild(link_);
    if (message.closed) Close(&link_);  // its end is heard of apart
    if (message.kind == 0) return;
    if (message.kind == kDeviceMessage && message.device >= 0) {
      if (held_.device >= 0) {
        close(message.device);
      } else {
        held_.device = message.device;
      }
      // What a successor sees there may lie on top of it.
      if (held_.number.empty()) held_.number = message.text;
      if (listen_ < 0) ListenTo(held_.number);
    } else if (message.kind == kReadyMessage) {
      ready_ = true;
      if (held_.asker >= 0 && !upgrading_) Answer(kDone);
    } else if (message.kind == kRefusalMessage && upgrading_) {
      upgrading_ = false;
      Answer(message.text);
    }
  }
}

void Holder::ListenTo(const std::string& device) {
  if (device.empty()) return;
  listen_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const UpgradeAddress at = AddressOf(device);
  if (bind(listen_, reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 ||
      listen(listen_, 4) != 0) {
    WEIR_LOG_WARN("this mount cannot be upgraded: {}",
                  Status::FromErrno(errno, "socket of device " + device).message());
    Close(&listen_);
  }
}

void Holder::OnAsker() {
  if (listen_ < 0) return;
  const int asker = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC);
  if (asker < 0) return;
  char word[16];
  if (!MayAsk(asker) || recv(asker, word, sizeof(word), 0) <= 0) {
    close(asker);
    return;
  }
  BeginUpgrade(asker);
}

void Holder::BeginUpgrade(int asker) {
  if (held_.asker >= 0 || !ready_ || ending_) {
    const std::string why = "it is starting, ending or being upgraded at this moment";
    (void)send(asker, why.data(), why.size(), MSG_NOSIGNAL);
    close(asker);
    return;
  }
  held_.asker = asker;
  if (!ProgramTakesOver()) {
    return Answer(fmt::format("{} cannot run, or keeps the state of a mount in another way",
                              options_.program));
  }
  upgrading_ = true;
  kill(child_, SIGUSR2);
}

void Holder::Answer(const std::string& words) {
  (void)send(held_.asker, words.data(), words.size(), MSG_NOSIGNAL);
  Close(&held_.asker);
}

bool Holder::ProgramTakesOver() const {
  const std::string version = std::to_string(client::RecordFile::kVersion);
  const pid_t pid = fork();
  if (pid == 0) {
    execl(options_.program.c_str(), "weirfs", "--takes-over", version.c_str(), "x", nullptr);
    _exit(1);
  }
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

bool Holder::MayRestart() {
  const TimePoint now = SystemClock::Get().Now();
  while (!restarts_.empty() && now - restarts_.front() > kRestartsWithin) restarts_.pop_front();
  if (restarts_.size() >= kMostRestarts) return false;
  if (!restarts_.empty() && now - restarts_.back() < kSoonDead) {
    poll(nullptr, 0, kPauseMs * static_cast<int>(restarts_.size()));
  }
  restarts_.push_back(SystemClock::Get().Now());
  return true;
}

void Holder::Ended(int status) {
  const bool handed_over = WIFEXITED(status) && WEXITSTATUS(status) == kHandedOver;
  const bool served = held_.device >= 0;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (!handed_over && (!served || ending_ || code_ == 0 || MountIsGone())) {
    done_ = true;
    return;
  }
  if (handed_over) {
    Exec();  // comes back when it cannot
    WEIR_LOG_WARN("cannot run {}: goes on with the version that ran before", options_.program);
    Answer(fmt::format("cannot run {}", options_.program));
  } else if (std::exchange(upgrading_, false)) {
    Answer(fmt::format("the process that served it {}", HowItEnded(status)));
  }
  upgrading_ = false;
  if (!handed_over) WEIR_LOG_WARN("the process that serves the mount {}", HowItEnded(status));
  if ((handed_over || MayRestart()) && StartChild()) return;
  WEIR_LOG_ERROR("the mount on {} is given up: processes that serve it keep on dying",
                 options_.mountpoint);
  code_ = 1;
  done_ = true;
}

void Holder::Exec() {
  std::vector<std::string> words = options_.argv;
  words.insert(words.end(), {"--held", FormatHeld(held_), "--held-at", options_.mountpoint});
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (access(options_.program.c_str(), X_OK) != 0) return;
  if (chdir(options_.directory.c_str()) != 0) return;
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int fd : {held_.state, held_.device, held_.asker}) KeepOverExec(fd);
  execv(options_.program.c_str(), argv.data());
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  (void)!chdir("/");
}

}  // namespace weir::weirfs
