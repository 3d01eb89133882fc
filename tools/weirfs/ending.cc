#include "tools/weirfs/ending.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <set>

#include "common/base/log.h"
#include "common/net/abstract_socket.h"

namespace weir::weirfs {
namespace {

constexpr std::string_view kStored = "stored";

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

// All that was said, once the other side is closed; none: it is not in time.
std::optional<std::string> WordsOf(int socket, TimePoint end) {
  std::string said;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SystemClock::Get().Now());
    pollfd ready{socket, POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) {
      return std::nullopt;
    }
    std::array<char, 4096> words{};
    const ssize_t got = recv(socket, words.data(), words.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return said;
    said.append(words.data(), static_cast<size_t>(got));
  }
}

}  // namespace

void Ending::Announce(const std::string& device) {
  const Result<int> socket = net::ListenAt(NewName(device));
  if (socket.ok()) {
    listen_ = *socket;
  } else {
    WEIR_LOG_WARN("umount will not wait until all is stored: {}", socket.status().message());
  }
}

void Ending::Tell(const Status& ended) {
  if (listen_ < 0) return;
  const std::string words = ended.ok() ? std::string(kStored) : ended.message();
  for (int peer = 0; (peer = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    // It stays open: that it closes says that this process has ended.
    (void)send(peer, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  close(listen_);
  listen_ = -1;
}

EndingWait::EndingWait(const std::string& device, uid_t owner) {
  for (const std::string& name : NamesOf(device)) {
    const Result<int> socket = net::DialOurs(name, owner);
    if (socket.ok()) servers_.push_back(*socket);
    if (socket.code() == ErrorCode::kBusy) all_asked_ = false;
  }
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
    return {ErrorCode::kIo,
            said->empty() ? "weirfs ended before it had stored all of it (see its log)" : *said};
  }
  if (all_asked_) return Status::Ok();
  return {ErrorCode::kBusy, "too many wait for weirfs to hear whether all of it is stored"};
}

}  // namespace weir::weirfs
