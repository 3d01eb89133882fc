#include "common/net/probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

namespace weir::net {
namespace {

bool Connects(const sockaddr* address, socklen_t size, int timeout_ms) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  int error = connect(fd, address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd wait{fd, POLLOUT, 0};
    socklen_t length = sizeof error;
    if (poll(&wait, 1, timeout_ms) > 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  close(fd);
  return error != ECONNREFUSED && error != ENOENT;
}

}  // namespace

bool MayListen(const Endpoint& endpoint, Duration patience) {
  const auto timeout_ms =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(patience).count());
  if (endpoint.kind == Endpoint::Kind::kIpc) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (endpoint.address.size() >= sizeof address.sun_path) return true;
    std::copy(endpoint.address.begin(), endpoint.address.end(), address.sun_path);
    if (endpoint.address.starts_with('@')) address.sun_path[0] = '\0';
    const size_t size = offsetof(sockaddr_un, sun_path) + endpoint.address.size();
    return Connects(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size),
                    timeout_ms);
  }
  if (endpoint.kind != Endpoint::Kind::kTcp) return true;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(endpoint.address.c_str(), std::to_string(endpoint.port).c_str(), &wanted,
                  &list) != 0) {
    return true;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (Connects(one->ai_addr, one->ai_addrlen, timeout_ms)) return true;
  }
  return false;
}

}  // namespace weir::net
