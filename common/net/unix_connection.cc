#include "common/net/unix_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "common/base/check.h"

namespace weir::net {
namespace {

epoll_event Watched(uint32_t events, uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return event;
}

Direction Opposite(Direction direction) {
  return direction == Direction::kToServer ? Direction::kToClient : Direction::kToServer;
}

}  // namespace

UnixConnection::UnixConnection(int socket, Direction sends, int epoll, uint64_t key)
    : socket_(socket), sends_(sends), epoll_(epoll), key_(key), reader_(Opposite(sends)) {
  epoll_event event = Watched(EPOLLIN, key_);
  WEIR_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_, &event) == 0, "an epoll takes no socket");
}

UnixConnection::~UnixConnection() {
  close(socket_);
}

UnixConnection::Sent UnixConnection::SendLocked(Outgoing& outgoing) {
  const Message& message = outgoing.message;
  const size_t all = message.header.size() + message.payload.size();
  while (outgoing.sent < all) {
    std::array<iovec, 2> parts{};
    size_t count = 0;
    size_t skip = outgoing.sent;
    const auto add = [&](const void* data, size_t size) {
      const size_t skipped = std::min(skip, size);
      skip -= skipped;
      if (skipped == size) return;
      auto* const bytes = static_cast<uint8_t*>(const_cast<void*>(data));
      parts[count++] = {bytes + skipped, size - skipped};
    };
    add(message.header.data(), message.header.size());
    add(message.payload.data(), message.payload.size());
    msghdr out{};
    out.msg_iov = parts.data();
    out.msg_iovlen = count;
    const ssize_t sent = sendmsg(socket_, &out, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      outgoing.sent += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      return Sent::kInPart;
    } else if (errno != EINTR) {
      return Sent::kLost;
    }
  }
  return Sent::kWhole;
}

// Its reader hears of the end, too, and says so.
void UnixConnection::LoseLocked() {
  lost_ = true;
  outgoing_.clear();
}

void UnixConnection::WatchLocked(bool for_room) {
  epoll_event event = Watched(for_room ? EPOLLIN | EPOLLOUT : EPOLLIN, key_);
  (void)epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_, &event);
}

bool UnixConnection::Send(Message message) {
  const auto envelope = DecodeSizes(sends_, message.header);
  // The peer cuts messages out of the stream by these.
  const bool whole = envelope.ok() && envelope->payload_bytes == message.payload.size() &&
                     kEnvelopeBytes + envelope->header_bytes == message.header.size();
  WEIR_CHECK(whole, "a message is not as long as its envelope says");
  const std::lock_guard lock(mutex_);
  if (lost_) return false;
  Outgoing next{std::move(message)};
  const bool waits = !outgoing_.empty();
  const Sent sent = waits ? Sent::kInPart : SendLocked(next);
  if (sent == Sent::kLost) LoseLocked();
  if (sent != Sent::kInPart) return sent == Sent::kWhole;
  outgoing_.push_back(std::move(next));
  if (!waits) WatchLocked(true);
  return true;
}

void UnixConnection::SendMore() {
  const std::lock_guard lock(mutex_);
  while (!outgoing_.empty()) {
    const Sent sent = SendLocked(outgoing_.front());
    if (sent == Sent::kInPart) return;
    if (sent == Sent::kLost) LoseLocked();
    if (sent == Sent::kWhole) outgoing_.pop_front();
  }
  WatchLocked(false);
}

UnixConnection::State UnixConnection::Receive(const std::function<void(Message)>& on_message) {
  const std::span<uint8_t> room = reader_.Room();
  const ssize_t came = recv(socket_, room.data(), room.size(), MSG_DONTWAIT);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) return State::kOpen;
  if (came <= 0) return State::kGone;
  reader_.Came(static_cast<size_t>(came));
  for (Message message;;) {
    const MessageReader::Taken taken = reader_.Take(&message);
    if (taken == MessageReader::Taken::kNothing) return State::kOpen;
    if (taken == MessageReader::Taken::kLost) return State::kRubbish;
    on_message(std::move(message));
    message = {};
  }
}

}  // namespace weir::net
