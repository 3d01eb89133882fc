#include "common/net/stream_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "common/base/check.h"

namespace weir::net {
namespace {

// What goes at once: copying it takes some 15 us, for which others wait.
constexpr size_t kPieceSent = 128UL << 10;

Direction OtherWay(Direction direction) {
  return direction == Direction::kToServer ? Direction::kToClient : Direction::kToServer;
}

}  // namespace

std::shared_ptr<StreamConnection> StreamConnection::Make(Reactor& reactor, int socket,
                                                         Direction sends, Events events) {
  std::shared_ptr<StreamConnection> connection(
      new StreamConnection(reactor, socket, sends, std::move(events)));
  reactor.Watch(socket, connection.get());
  return connection;
}

StreamConnection::StreamConnection(Reactor& reactor, int socket, Direction sends, Events events)
    : reactor_(reactor),
      socket_(socket),
      sends_(sends),
      events_(std::move(events)),
      reader_(OtherWay(sends)) {}

StreamConnection::~StreamConnection() {
  Close();
}

void StreamConnection::Close() {
  if (!std::exchange(open_, false)) return;
  reactor_.Unwatch(this);
  close(socket_);
  outgoing_.clear();
}

void StreamConnection::End(Ended how) {
  Close();
  const auto on_end = std::move(events_.on_end);
  on_end(how);
}

void StreamConnection::OnReadable() {
  const auto self = shared_from_this();  // an event may drop the last reference
  size_t bytes_left = kTurnBytes;
  int messages_left = kTurnMessages;
  while (TakeMessages(&messages_left)) {
    if (messages_left == 0 || bytes_left == 0) {
      receiving_ = true;
      return reactor_.Continue(this);
    }
    const Received received = Receive(&bytes_left);
    if (received == Received::kNothing) return;
    if (received == Received::kGone) return End(Ended::kGone);
  }
}

// False: the connection has ended.
bool StreamConnection::TakeMessages(int* messages_left) {
  while (open_ && *messages_left > 0) {
    Message message;
    const MessageReader::Taken taken = reader_.Take(&message);
    if (taken == MessageReader::Taken::kNothing) return true;
    if (taken == MessageReader::Taken::kLost) {
      End(Ended::kRubbish);
      return false;
    }
    --*messages_left;
    events_.on_message(std::move(message));
  }
  return open_;
}

StreamConnection::Received StreamConnection::Receive(size_t* bytes_left) {
  const std::span<uint8_t> room = reader_.Room();
  const size_t most = std::min(room.size(), *bytes_left);
  ssize_t came = -1;
  do {
    came = recv(socket_, room.data(), most, MSG_DONTWAIT);
  } while (came < 0 && errno == EINTR);
  if (came < 0 && errno == EAGAIN) return Received::kNothing;
  if (came <= 0) return Received::kGone;
  reader_.Came(static_cast<size_t>(came));
  *bytes_left -= static_cast<size_t>(came);
  return Received::kSome;
}

void StreamConnection::Send(Message message) {
  const auto sizes = DecodeSizes(sends_, message.header);
  // The peer cuts messages out of the stream by these.
  const bool whole = sizes.ok() && sizes->payload_bytes == message.payload.size() &&
                     kEnvelopeBytes + sizes->header_bytes == message.header.size();
  WEIR_CHECK(whole, "a message is not as long as its envelope says");
  if (!open_ || lost_) return;
  const bool large = message.payload.size() > kTurnBytes;
  outgoing_.push_back(std::move(message));
  if (!large || full_) return SendAtTurnEnd();
  sending_ = true;
  reactor_.Continue(this);
}

void StreamConnection::OnContinue() {
  const auto self = shared_from_this();
  if (std::exchange(sending_, false)) SendQueued();
  if (open_ && std::exchange(receiving_, false)) OnReadable();
}

void StreamConnection::SendAtTurnEnd() {
  if (full_ || sending_ || std::exchange(ending_turn_, true)) return;
  reactor_.AtTurnEnd([self = shared_from_this()] {
    self->ending_turn_ = false;
    self->SendQueued();
  });
}

void StreamConnection::OnWritable() {
  full_ = false;
  SendQueued();
}

void StreamConnection::SendQueued() {
  size_t left = kPieceSent;
  while (open_ && !outgoing_.empty() && left > 0) {
    Parts parts;
    msghdr out{};
    out.msg_iov = parts.data();
    out.msg_iovlen = Gather(&parts, left);
    const ssize_t sent = sendmsg(socket_, &out, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      ++sends_done_;
      Forget(static_cast<size_t>(sent));
      left -= static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      full_ = true;
      return reactor_.WaitWritable(this);
    } else if (errno != EINTR) {
      lost_ = true;
      outgoing_.clear();
    }
  }
  if (outgoing_.empty()) return;
  sending_ = true;
  reactor_.Continue(this);
}

// At most `most` bytes.
size_t StreamConnection::Gather(Parts* parts, size_t most) const {
  size_t count = 0;
  size_t skip = first_sent_;
  const auto add = [&](const void* data, size_t size) {
    const size_t skipped = std::min(skip, size);
    skip -= skipped;
    const size_t taken = std::min(size - skipped, most);
    if (taken == 0) return;
    most -= taken;
    auto* const bytes = static_cast<uint8_t*>(const_cast<void*>(data));
    (*parts)[count++] = {bytes + skipped, taken};
  };
  for (const Message& message : outgoing_) {
    if (most == 0 || count + 2 > parts->size()) break;
    add(message.header.data(), message.header.size());
    add(message.payload.data(), message.payload.size());
  }
  return count;
}

void StreamConnection::Forget(size_t sent) {
  first_sent_ += sent;
  while (!outgoing_.empty()) {
    const size_t size = outgoing_.front().header.size() + outgoing_.front().payload.size();
    if (first_sent_ < size) return;
    first_sent_ -= size;
    outgoing_.pop_front();
  }
}

}  // namespace weir::net
