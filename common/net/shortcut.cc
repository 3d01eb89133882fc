#include "common/net/shortcut.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace weir::net {
namespace {

constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kEverywhere[] = {"127.0.0.1", "localhost", "0.0.0.0", "*", "::"};

// Whether root or we ourselves listen there.
bool IsOurs(std::string_view name) {
  sockaddr_un address{};
  if (name.size() > sizeof(address.sun_path)) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  ucred listener{};
  socklen_t bytes = sizeof(listener);
  const bool ours = connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &bytes) == 0 &&
                    (listener.uid == 0 || listener.uid == geteuid());
  close(fd);
  return ours;
}

}  // namespace

std::optional<std::string> ShortcutOf(const Endpoint& endpoint, Lane lane) {
  if (endpoint.kind != Endpoint::Kind::kTcp || endpoint.port == 0) return std::nullopt;
  for (const std::string_view host : kEverywhere) {
    if (endpoint.address != host) continue;
    return std::string(kIpc) + "@weirfs-127.0.0.1-" + std::to_string(endpoint.port) +
           (lane == Lane::kPrompt ? "-prompt" : "");
  }
  return std::nullopt;
}

std::string ShortestWayTo(const Endpoint& endpoint, Lane lane) {
  const auto shortcut = ShortcutOf(endpoint, lane);
  if (shortcut.has_value() && IsOurs(shortcut->substr(kIpc.size()))) return *shortcut;
  return lane == Lane::kPrompt ? ShortestWayTo(endpoint) : endpoint.ToString();
}

}  // namespace weir::net
