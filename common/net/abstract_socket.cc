#include "common/net/abstract_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "common/base/system_user.h"

namespace weir::net {
namespace {

constexpr int kBacklog = 256;

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Result<Address> AddressOf(std::string_view name) {
  Address address;
  if (name.empty() || name.size() > sizeof(address.name.sun_path)) {
    return {ErrorCode::kInvalid, "no socket can have the name " + std::string(name)};
  }
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path, name.data(), name.size());
  address.name.sun_path[0] = '\0';
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return address;
}

Result<int> MakeSocket(std::string_view name) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Status::FromErrno(errno, "cannot make a socket for " + std::string(name));
  return fd;
}

bool ListenerIs(const std::function<bool(uid_t)>& ours, int fd) {
  ucred listener{};
  socklen_t bytes = sizeof(listener);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &bytes) == 0 && ours(listener.uid);
}

Status Close(int fd, Status status) {
  close(fd);
  return status;
}

}  // namespace

Result<int> ListenAt(std::string_view name) {
  WEIR_ASSIGN_OR_RETURN(const Address address, AddressOf(name));
  WEIR_ASSIGN_OR_RETURN(const int fd, MakeSocket(name));
  if (bind(fd, address.get(), address.bytes) == 0 && listen(fd, kBacklog) == 0) return fd;
  const std::string what = "cannot listen on " + std::string(name);
  if (errno == EADDRINUSE) return Close(fd, {ErrorCode::kBusy, what + ": already in use"});
  return Close(fd, Status::FromErrno(errno, what));
}

Result<int> Dial(std::string_view name, const std::function<bool(uid_t)>& ours) {
  WEIR_ASSIGN_OR_RETURN(const Address address, AddressOf(name));
  WEIR_ASSIGN_OR_RETURN(const int fd, MakeSocket(name));
  const std::string what = "cannot dial " + std::string(name);
  if (connect(fd, address.get(), address.bytes) != 0) {
    if (errno == EAGAIN) return Close(fd, {ErrorCode::kBusy, what + ": too many dial it"});
    return Close(fd, {ErrorCode::kUnreachable, what + ": nobody listens there"});
  }
  if (ListenerIs(ours, fd)) return fd;
  return Close(fd, {ErrorCode::kUnreachable, what + ": a stranger listens there"});
}

Result<int> DialOurs(std::string_view name) {
  return Dial(name, [](uid_t user) { return IsSystemUser(user) || user == geteuid(); });
}

}  // namespace weir::net
