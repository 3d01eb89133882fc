#include "common/net/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace weir::net {
namespace {

constexpr int kBacklog = 256;
constexpr int kPortsTried = 16;
// A silent peer is asked after 10 s, three times, and given up.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 3;
constexpr int kProbes = 3;
constexpr int kUnackedMs = 20'000;

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  void set_port(uint16_t port) {
    if (storage.ss_family == AF_INET) {
      reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
    } else {
      reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
    }
  }
};

Result<Address> AddressOf(const Endpoint& endpoint) {
  const std::string host = endpoint.address == "*" ? "::" : endpoint.address;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) {
    return {ErrorCode::kNotFound, "'" + host + "' is no address of this machine"};
  }
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.bytes = found->ai_addrlen;
  freeaddrinfo(found);
  address.set_port(endpoint.port);
  return address;
}

void Set(int socket, int level, int option, int value) {
  (void)setsockopt(socket, level, option, &value, sizeof(value));
}

Result<int> MakeSocket(const Address& address) {
  const int fd =
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) return Status::FromErrno(errno, "cannot make a TCP socket");
  return fd;
}

Status ListenError(const Endpoint& endpoint) {
  const std::string what = "cannot listen on " + endpoint.ToString();
  if (errno == EADDRINUSE) return {ErrorCode::kBusy, what + ": already in use"};
  if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT || errno == ENODEV) {
    return {ErrorCode::kNotFound, what + ": that is no address of this machine"};
  }
  return Status::FromErrno(errno, what);
}

Result<int> ListenAtOne(const Endpoint& endpoint) {
  WEIR_ASSIGN_OR_RETURN(Address address, AddressOf(endpoint));
  Result<int> fd = MakeSocket(address);
  if (!fd.ok() && errno != EAFNOSUPPORT) return fd;
  if (!fd.ok() && endpoint.address == "*") {  // a machine without IPv6
    return ListenAtOne({endpoint.kind, "0.0.0.0", endpoint.port});
  }
  if (!fd.ok()) return ListenError(endpoint);
  Set(*fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.storage.ss_family == AF_INET6) Set(*fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(*fd, address.get(), address.bytes) == 0 && listen(*fd, kBacklog) == 0) return fd;
  const Status status = ListenError(endpoint);
  close(*fd);
  return status;
}

uint16_t PortOf(int socket) {
  Address address;
  address.bytes = sizeof(address.storage);
  (void)getsockname(socket, address.get(), &address.bytes);
  return address.storage.ss_family == AF_INET
             ? ntohs(reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port)
             : ntohs(reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port);
}

// On the port that the first one gets; kBusy: another one does not have it free.
Result<TcpListeners> ListenAtAll(const std::vector<Endpoint>& addresses) {
  TcpListeners all;
  Status missed(ErrorCode::kNotFound, "no address to listen at");
  for (const Endpoint& address : addresses) {
    const Result<int> fd = ListenAtOne({address.kind, address.address, all.port});
    if (fd.ok()) {
      all.sockets.push_back(*fd);
      all.port = PortOf(*fd);
    } else if (fd.code() == ErrorCode::kNotFound) {
      missed = fd.status();
    } else {
      for (const int socket : all.sockets) close(socket);
      return fd.status();
    }
  }
  if (all.sockets.empty()) return missed;
  return all;
}

}  // namespace

Result<TcpListeners> ListenTcp(const std::vector<Endpoint>& addresses) {
  Result<TcpListeners> listeners = ListenAtAll(addresses);
  for (int i = 1; i < kPortsTried && listeners.code() == ErrorCode::kBusy; ++i) {
    listeners = ListenAtAll(addresses);
  }
  return listeners;
}

Result<int> DialTcp(const Endpoint& endpoint) {
  WEIR_ASSIGN_OR_RETURN(Address address, AddressOf(endpoint));
  WEIR_ASSIGN_OR_RETURN(const int fd, MakeSocket(address));
  if (connect(fd, address.get(), address.bytes) == 0 || errno == EINPROGRESS) return fd;
  const Status status = Status::FromErrno(errno, "cannot dial " + endpoint.ToString());
  close(fd);
  return status;
}

Result<bool> FinishTcp(int socket) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  (void)getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) return Status::FromErrno(error, "no connection");
  Address peer;
  peer.bytes = sizeof(peer.storage);
  return getpeername(socket, peer.get(), &peer.bytes) == 0;
}

void SetUpTcp(int socket) {
  Set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  Set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  Set(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  Set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnackedMs);
}

}  // namespace weir::net
