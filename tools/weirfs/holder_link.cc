// What a holder, its child and who upgrades say to each other.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "client/fuse/kernel_tuning.h"
#include "tools/cli/mounts.h"
#include "tools/weirfs/holder.h"
#include "tools/weirfs/holder_link.h"

namespace weir::weirfs {

std::string FormatHeld(const Held& held) {
  return fmt::format("{},{},{},{}", held.state, held.device, held.asker, held.number);
}

Result<Held> ParseHeld(const std::string& text) {
  Held held;
  int read = 0;
  if (std::sscanf(text.c_str(), "%d,%d,%d%n", &held.state, &held.device, &held.asker, &read) != 3) {
    return Status(ErrorCode::kInvalid, fmt::format("--held {}: is for weirfs itself", text));
  }
  // An older holder says no more.
  if (const size_t at = static_cast<size_t>(read); at < text.size())
    held.number = text.substr(at + 1);
  return held;
}

std::vector<std::string> WithoutHeld(std::vector<std::string> argv) {
  for (const char* const word : {"--held", "--held-at"}) {
    const auto found = std::find(argv.begin(), argv.end(), word);
    if (found != argv.end() && found + 1 != argv.end()) argv.erase(found, found + 2);
  }
  return argv;
}

void SendDevice(const Held& held, int device_fd, const std::string& device) {
  std::string words = std::string(1, kDeviceMessage) + device;
  iovec part{words.data(), words.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof(room);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &device_fd, sizeof(device_fd));
  (void)sendmsg(held.link, &message, MSG_NOSIGNAL);
}

void SendReady(const Held& held) {
  (void)send(held.link, &kReadyMessage, 1, MSG_NOSIGNAL);
}

void SendRefusal(const Held& held, const std::string& why) {
  const std::string words = std::string(1, kRefusalMessage) + why;
  (void)send(held.link, words.data(), words.size(), MSG_NOSIGNAL);
}

ChildMessage ReceiveFromChild(int link) {
  char words[4096];
  iovec part{words, sizeof(words)};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof(room);
  ChildMessage out;
  const ssize_t got = recvmsg(link, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got <= 0) {
    out.closed = got == 0;
    return out;
  }
  out.kind = words[0];
  out.text.assign(words + 1, static_cast<size_t>(got) - 1);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&out.device, CMSG_DATA(header), sizeof(out.device));
  }
  return out;
}

UpgradeAddress AddressOf(const std::string& device) {
  UpgradeAddress out;
  out.address.sun_family = AF_UNIX;
  const std::string name = "weirfs-mount-" + device;
  // Abstract: the first byte is 0.
  std::memcpy(out.address.sun_path + 1, name.data(), std::min(name.size(), kLongestName));
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                    std::min(name.size(), kLongestName));
  return out;
}

bool MayAsk(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == geteuid();
}

Status AskForUpgrade(const std::string& mountpoint) {
  const std::string place = cli::AbsolutePath(mountpoint);
  const std::string device = client::DeviceOfMount(place);
  if (device.empty() || !cli::IsWeirfsMount(place)) {
    return {ErrorCode::kNotFound, fmt::format("no WeirFS is mounted on '{}'", mountpoint)};
  }
  const int socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const UpgradeAddress to = AddressOf(device);
  const bool reached =
      socket_fd >= 0 &&
      connect(socket_fd, reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0;
  if (!reached || !MayAsk(socket_fd)) {
    if (socket_fd >= 0) close(socket_fd);
    return {
        ErrorCode::kInvalid,
        fmt::format("cannot upgrade the mount on '{0}': it was not made with -o supervise, or "
                    "is another user's (weirfs --replace ENDPOINT {0} takes its place, and open "
                    "files stay with the old process)",
                    mountpoint)};
  }
  char words[4096];
  (void)send(socket_fd, "upgrade", 7, MSG_NOSIGNAL);
  const ssize_t got = recv(socket_fd, words, sizeof(words), 0);
  close(socket_fd);
  if (got <= 0) {
    return {ErrorCode::kIo, fmt::format("the process that holds '{}' has ended", mountpoint)};
  }
  const std::string said(words, static_cast<size_t>(got));
  if (said == kDone) return Status::Ok();
  return {ErrorCode::kBusy, fmt::format("'{}' was not upgraded: {}", mountpoint, said)};
}

}  // namespace weir::weirfs
