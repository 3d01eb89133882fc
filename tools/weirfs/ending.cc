#include "tools/weirfs/ending.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "common/base/log.h"
#include "common/net/abstract_socket.h"

namespace weir::weirfs {
namespace {

constexpr std::string_view kStored = "stored";
constexpr std::string_view kNotYours =
    "only root and who has mounted it hear whether all of it is stored";
// A process that serves accepts at once.
constexpr Duration kDialPatience = std::chrono::milliseconds(100);

std::string PrefixOf(const std::string& device) {
  return "@weirfs-ending-" + device + "-";
}

// A name that nobody can have bound before, and whoever has the same number still ends.
std::string NewName(const std::string& device) {
  uint64_t chance = 0;
  (void)!getrandom(&chance, sizeof(chance), 0);
  return fmt::format("{}{:016x}", PrefixOf(device), chance);
}

std::set<std::string> NamesOf(const std::string& device) {
  const std::string wanted = PrefixOf(device);
  std::set<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    const size_t at = line.rfind(' ') + 1;
    if (line.compare(at, wanted.size(), wanted) == 0) names.insert(line.substr(at));
  }
  return names;
}

bool MayHear(int peer) {
  ucred who{};
  socklen_t bytes = sizeof(who);
  return getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 &&
         (who.uid == 0 || who.uid == geteuid());
}

bool HasHungUp(int peer) {
  pollfd ended{peer, 0, 0};
  return poll(&ended, 1, 0) == 1;
}

void Say(int peer, std::string_view words) {
  (void)send(peer, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// All that was said, once the other side is closed or has said more than anybody says; none: it is
// not in time.
std::optional<std::string> WordsOf(int socket, TimePoint end) {
  std::string said;
  std::array<char, 4096> words{};
  while (said.size() < words.size()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SystemClock::Get().Now());
    pollfd ready{socket, POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) {
      return std::nullopt;
    }
    const ssize_t got = recv(socket, words.data(), words.size() - said.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return said;
    said.append(words.data(), static_cast<size_t>(got));
  }
  return said;
}

// A terminal may take the rest for orders.
std::string PlainTextOf(std::string said) {
  std::replace_if(
      said.begin(), said.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return said;
}

}  // namespace

void Ending::Announce(const std::string& device) {
  const std::lock_guard lock(mutex_);
  const Result<int> socket = net::ListenAt(NewName(device));
  if (!socket.ok()) {
    WEIR_LOG_WARN("umount will not wait until all is stored: {}", socket.status().message());
    return;
  }
  listen_ = *socket;
  fcntl(listen_, F_SETOWN, getpid());
  fcntl(listen_, F_SETFL, O_NONBLOCK | O_ASYNC);
  AcceptAll();  // who came before
}

void Ending::Accept() {
  const std::lock_guard lock(mutex_);
  if (listen_ >= 0) AcceptAll();
}

void Ending::AcceptAll() {
  std::erase_if(peers_, [](int peer) { return HasHungUp(peer) && close(peer) == 0; });
  for (int peer = 0; (peer = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    if (MayHear(peer)) {
      peers_.push_back(peer);
    } else {
      Say(peer, kNotYours);
      close(peer);
    }
  }
}

void Ending::Tell(const Status& ended) {
  const std::lock_guard lock(mutex_);
  if (listen_ < 0) return;
  AcceptAll();
  // They stay open: that they close says that this process has ended.
  for (const int peer : peers_) Say(peer, ended.ok() ? kStored : ended.message());
  close(listen_);
  listen_ = -1;
}

EndingWait::EndingWait(std::string device, uid_t owner)
    : device_(std::move(device)), owner_(owner) {
  LookAgain();
}

void EndingWait::LookAgain() {
  const TimePoint end = SystemClock::Get().Now() + kDialPatience;
  std::set<std::string> names = NamesOf(device_);
  for (;;) {
    std::erase_if(names, [this](const std::string& name) { return Ask(name); });
    if (names.empty() || SystemClock::Get().Now() >= end) return;
    poll(nullptr, 0, 1);
  }
}

// False: too many dial it, be it ours.
bool EndingWait::Ask(const std::string& name) {
  if (asked_.contains(name)) return true;
  const Result<int> socket =
      net::Dial(name, [this](uid_t user) { return user == 0 || user == owner_; });
  if (socket.ok()) servers_.push_back(*socket);
  if (socket.code() == ErrorCode::kBusy) return false;
  asked_.insert(name);
  return true;
}

EndingWait::~EndingWait() {
  for (const int server : servers_) close(server);
}

Status EndingWait::Wait(Duration patience) {
  const TimePoint end = SystemClock::Get().Now() + patience;
  for (const int server : servers_) {
    const std::optional<std::string> said = WordsOf(server, end);
    if (!said) {
      return {ErrorCode::kTimedOut,
              fmt::format("weirfs has not stored all of it after {} s, and goes on",
                          std::chrono::ceil<std::chrono::seconds>(patience).count())};
    }
    if (*said == kStored) continue;
    return {ErrorCode::kIo, said->empty()
                                ? "weirfs ended before it had stored all of it (see its log)"
                                : PlainTextOf(*said)};
  }
  return Status::Ok();
}

}  // namespace weir::weirfs
