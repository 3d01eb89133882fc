#include "common/net/zmq_socket.h"

#include <zmq.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "common/base/check.h"

namespace weir::net {
namespace {

// The routing id that ZeroMQ gives a peer: a zero byte and a 32-bit number.
constexpr size_t kRoutingIdBytes = 5;
constexpr size_t kMaxFrameBytes = kMaxPayloadBytes;
// Of a context: a client that looks for a server takes three, and may look for many at once.
constexpr int kMostSockets = 16'384;
constexpr int kUnbindPatienceMs = 5000;

struct OwnedMsg {
  OwnedMsg() { zmq_msg_init(&msg); }
  ~OwnedMsg() { zmq_msg_close(&msg); }
  OwnedMsg(const OwnedMsg&) = delete;
  OwnedMsg& operator=(const OwnedMsg&) = delete;
  [[nodiscard]] const char* data() { return static_cast<const char*>(zmq_msg_data(&msg)); }
  [[nodiscard]] size_t size() const { return zmq_msg_size(&msg); }
  zmq_msg_t msg;
};

Status ZmqError(const std::string& what) {
  const int error = zmq_errno();
  if (error == EADDRINUSE) return {ErrorCode::kBusy, what + ": already in use"};
  if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == ENODEV) {
    return {ErrorCode::kNotFound, what + ": that is no address of this machine"};
  }
  return {FromErrno(error), what + ": " + zmq_strerror(error)};
}

bool SetInt(void* socket, int option, int value) {
  return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

int GetFd(void* socket) {
  int fd = -1;
  size_t size = sizeof(fd);
  zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
  return fd;
}

std::string LastEndpoint(void* socket) {
  std::array<char, 512> text{};
  size_t size = text.size();
  zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text.data(), &size);
  return text.data();
}

// Keeps the received frame alive as long as somebody uses its bytes.
Buffer ToBuffer(std::unique_ptr<OwnedMsg> frame) {
  const size_t size = frame->size();
  if (size == 0) return {};
  auto owner = std::shared_ptr<OwnedMsg>(std::move(frame));
  auto* data = static_cast<uint8_t*>(zmq_msg_data(&owner->msg));
  return {std::move(owner), data, size};
}

void FreeBuffer(void* /*data*/, void* hint) {
  delete static_cast<Buffer*>(hint);
}

bool SendFrame(void* socket, zmq_msg_t* msg, int flags) {
  if (zmq_msg_send(msg, socket, flags | ZMQ_DONTWAIT) >= 0) return true;
  zmq_msg_close(msg);
  return false;
}

bool SendBytes(void* socket, const void* data, size_t size, int flags) {
  zmq_msg_t msg;
  if (zmq_msg_init_size(&msg, size) != 0) return false;
  std::memcpy(zmq_msg_data(&msg), data, size);
  return SendFrame(socket, &msg, flags);
}

bool SendBuffer(void* socket, Buffer buffer) {
  zmq_msg_t msg;
  uint8_t* data = buffer.data();
  const size_t size = buffer.size();
  auto hint = std::make_unique<Buffer>(std::move(buffer));
  if (zmq_msg_init_data(&msg, data, size, FreeBuffer, hint.get()) != 0) return false;
  (void)hint.release();
  return SendFrame(socket, &msg, 0);
}

bool HasMore(void* socket) {
  int more = 0;
  size_t size = sizeof(more);
  zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
  return more != 0;
}

// Skips what is left of a message that is not ours.
void SkipRest(void* socket) {
  while (HasMore(socket)) {
    OwnedMsg frame;
    if (zmq_msg_recv(&frame.msg, socket, ZMQ_DONTWAIT) < 0) return;
  }
}

bool ToPeer(OwnedMsg& frame, PeerId* peer) {
  if (frame.size() != kRoutingIdBytes || frame.data()[0] != 0) return false;
  uint32_t id = 0;
  std::memcpy(&id, frame.data() + 1, sizeof(id));
  *peer = id;
  return true;
}

}  // namespace

ZmqContext::ZmqContext() : context_(zmq_ctx_new()) {
  WEIR_CHECK(context_ != nullptr, "no ZeroMQ context");
  zmq_ctx_set(context_, ZMQ_IO_THREADS, 1);
  zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, kMostSockets);
}

ZmqContext::~ZmqContext() {
  zmq_ctx_term(context_);
}

ZmqSocket::ZmqSocket(std::shared_ptr<ZmqContext> context, Direction sends)
    : context_(std::move(context)), sends_(sends) {}

ZmqSocket::~ZmqSocket() {
  EndMonitor();
  Unbind();
  if (socket_ != nullptr) zmq_close(socket_);
}

void ZmqSocket::EndMonitor() {
  if (monitor_ == nullptr) return;
  zmq_socket_monitor(socket_, nullptr, 0);
  zmq_close(std::exchange(monitor_, nullptr));
}

// Listeners are closed by ZeroMQ's own thread, which tells when it has done so.
void ZmqSocket::Unbind() {
  if (bound_.empty() || !WatchEvents(ZMQ_EVENT_CLOSED).ok()) return;
  SetInt(monitor_, ZMQ_RCVTIMEO, kUnbindPatienceMs);
  for (const std::string& endpoint : bound_) {
    if (zmq_unbind(socket_, endpoint.c_str()) != 0) continue;
    OwnedMsg closed;
    if (zmq_msg_recv(&closed.msg, monitor_, 0) < 0) break;
    SkipRest(monitor_);
  }
  EndMonitor();
}

// For what is left of a peer that went without a word: who waits for an answer pings by itself
// (rpc_client.cc), and each heartbeat wakes both ends three times.
constexpr int kHeartbeatMs = 10'000;

Status ZmqSocket::Open() {
  const bool server = sends_ == Direction::kToClient;
  socket_ = zmq_socket(context_->get(), server ? ZMQ_ROUTER : ZMQ_DEALER);
  if (socket_ == nullptr) return ZmqError("cannot make a socket");
  bool ok = SetInt(socket_, ZMQ_LINGER, 0) && SetInt(socket_, ZMQ_SNDHWM, 0) &&
            SetInt(socket_, ZMQ_RCVHWM, 0) && SetInt(socket_, ZMQ_IPV6, 1) &&
            SetInt(socket_, ZMQ_HEARTBEAT_IVL, kHeartbeatMs) &&
            SetInt(socket_, ZMQ_HEARTBEAT_TIMEOUT, kHeartbeatMs);
  const int64_t largest = kMaxFrameBytes;
  ok = ok && zmq_setsockopt(socket_, ZMQ_MAXMSGSIZE, &largest, sizeof(largest)) == 0;
  if (server) {
    ok = ok && SetInt(socket_, ZMQ_ROUTER_MANDATORY, 1);
  } else {
    ok = ok && SetInt(socket_, ZMQ_IMMEDIATE, 1) && SetInt(socket_, ZMQ_RECONNECT_IVL, 50) &&
         SetInt(socket_, ZMQ_CONNECT_TIMEOUT, 2000);
  }
  return ok ? Status::Ok() : ZmqError("cannot set up a socket");
}

Status ZmqSocket::Bind(const std::string& endpoint) {
  if (zmq_bind(socket_, endpoint.c_str()) != 0) return ZmqError("cannot listen on " + endpoint);
  bound_.push_back(LastEndpoint(socket_));
  return Status::Ok();
}

Status ZmqSocket::Connect(const std::string& endpoint) {
  if (zmq_connect(socket_, endpoint.c_str()) == 0) return Status::Ok();
  return ZmqError("cannot dial " + endpoint);
}

Status ZmqSocket::Disconnect(const std::string& endpoint) {
  if (zmq_disconnect(socket_, endpoint.c_str()) == 0) return Status::Ok();
  return ZmqError("cannot hang up " + endpoint);
}

std::string ZmqSocket::BoundEndpoint() const {
  std::string bound = LastEndpoint(socket_);
  // A dual-stack socket reports IPv4 addresses in IPv6 clothes; people and maps want them plain.
  constexpr std::string_view kMapped = "tcp://[::ffff:";
  if (bound.starts_with(kMapped)) {
    const size_t bracket = bound.find(']');
    bound = "tcp://" + bound.substr(kMapped.size(), bracket - kMapped.size()) +
            bound.substr(bracket + 1);
  }
  return bound;
}

int ZmqSocket::fd() const {
  return GetFd(socket_);
}

Status ZmqSocket::Watch() {
  return WatchEvents(ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |
                     ZMQ_EVENT_CONNECT_RETRIED);
}

Status ZmqSocket::WatchEvents(int events) {
  static std::atomic<uint64_t> last{0};
  const std::string name = "inproc://watch-" + std::to_string(++last);
  if (zmq_socket_monitor(socket_, name.c_str(), events) != 0) {
    return ZmqError("cannot watch a socket");
  }
  monitor_ = zmq_socket(context_->get(), ZMQ_PAIR);
  if (monitor_ == nullptr || !SetInt(monitor_, ZMQ_LINGER, 0) ||
      zmq_connect(monitor_, name.c_str()) != 0) {
    return ZmqError("cannot watch a socket");
  }
  return Status::Ok();
}

int ZmqSocket::watch_fd() const {
  return GetFd(monitor_);
}

ZmqSocket::Events ZmqSocket::TakeEvents() {
  Events events;
  for (;;) {
    OwnedMsg frame;  // the first of two: the kind of event, and a value
    if (zmq_msg_recv(&frame.msg, monitor_, ZMQ_DONTWAIT) < 0) return events;
    uint16_t kind = 0;
    if (frame.size() >= sizeof(kind)) std::memcpy(&kind, frame.data(), sizeof(kind));
    if (kind == ZMQ_EVENT_CONNECT_RETRIED) {
      ++events.failed;
    } else {
      events.lost = kind == ZMQ_EVENT_DISCONNECTED;
      events.connected |= kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    }
    SkipRest(monitor_);
  }
}

ZmqSocket::Received ZmqSocket::Receive(PeerId* peer, Message* message) {
  if (sends_ == Direction::kToClient) {
    OwnedMsg id;
    if (zmq_msg_recv(&id.msg, socket_, ZMQ_DONTWAIT) < 0) return Received::kNothing;
    if (!ToPeer(id, peer) || !HasMore(socket_)) {
      SkipRest(socket_);
      return Received::kMalformed;
    }
  }
  OwnedMsg header;
  if (zmq_msg_recv(&header.msg, socket_, ZMQ_DONTWAIT) < 0) return Received::kNothing;
  auto payload = std::make_unique<OwnedMsg>();
  const bool has_payload = HasMore(socket_);
  if (has_payload && zmq_msg_recv(&payload->msg, socket_, ZMQ_DONTWAIT) < 0) {
    return Received::kNothing;
  }
  const bool too_many = HasMore(socket_);
  SkipRest(socket_);
  if (too_many || header.size() > kEnvelopeBytes + kMaxHeaderBytes) return Received::kMalformed;
  message->header.assign(header.data(), header.size());
  message->payload = has_payload ? ToBuffer(std::move(payload)) : Buffer();
  const Direction receives =
      sends_ == Direction::kToClient ? Direction::kToServer : Direction::kToClient;
  return DecodeEnvelope(receives, message->header).ok() ? Received::kMessage : Received::kMalformed;
}

bool ZmqSocket::HasInput() const {
  int events = 0;
  size_t size = sizeof(events);
  return zmq_getsockopt(socket_, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
}

bool ZmqSocket::Send(PeerId peer, Message message) {
  if (sends_ == Direction::kToClient) {
    std::array<char, kRoutingIdBytes> id{};
    const auto number = static_cast<uint32_t>(peer);
    std::memcpy(id.data() + 1, &number, sizeof(number));
    if (!SendBytes(socket_, id.data(), id.size(), ZMQ_SNDMORE)) return false;
  }
  const int more = message.payload.empty() ? 0 : ZMQ_SNDMORE;
  if (!SendBytes(socket_, message.header.data(), message.header.size(), more)) return false;
  return more == 0 || SendBuffer(socket_, std::move(message.payload));
}

}  // namespace weir::net
