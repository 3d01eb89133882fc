#include "common/net/zmq_transport.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "common/base/short_turns.h"
#include "common/net/inproc_transport.h"
#include "common/net/io_thread.h"
#include "common/net/resolve.h"
#include "common/net/shortcut.h"
#include "common/net/unix_transport.h"
#include "common/net/zmq_socket.h"

namespace weir::net {
namespace {

// Messages taken from a socket before its thread looks at its tasks again.
constexpr int kReceiveBatch = 64;
// Threads of a server that move bytes: what one connection sends does not wait for all that
// another sends. Small messages are no burden.
constexpr int kServerMovers = 2;
constexpr int kAttemptsAtAddress = 4;
// What a transport may need at its start, with its ZeroMQ, which aborts where it gets none.
constexpr size_t kFilesOfTransport = 24;

Status CheckFilesLeft(const Endpoint& endpoint) {
  std::array<int, kFilesOfTransport> files{};
  size_t got = 0;
  while (got < files.size() && (files[got] = eventfd(0, EFD_CLOEXEC)) >= 0) ++got;
  for (size_t i = 0; i < got; ++i) close(files[i]);
  if (got == files.size()) return Status::Ok();
  return {ErrorCode::kIo, "no connection for " + endpoint.ToString() +
                              ": too many files are open (raise ulimit -n)"};
}

class ZmqServer final : public ServerTransport {
 public:
  ZmqServer() : socket_(Direction::kToClient) {}
  ~ZmqServer() override { loop_.Stop(); }

  // At every address of a host name that this machine has. The name stays what others are told: it
  // may mean another address to them.
  Status Bind(const Endpoint& endpoint) {
    WEIR_RETURN_IF_ERROR(socket_.Open(kServerMovers));
    WEIR_ASSIGN_OR_RETURN(const std::vector<Endpoint> addresses, Resolve(endpoint));
    Status missed;
    for (Endpoint address : addresses) {
      if (!endpoint_.empty()) address.port = ParseEndpoint(endpoint_)->port;
      Status status = socket_.Bind(address.ToString());
      if (!status.ok() && status.code() != ErrorCode::kNotFound) return status;
      if (!status.ok()) missed = status;
      if (status.ok() && endpoint_.empty()) endpoint_ = socket_.BoundEndpoint();
    }
    if (endpoint_.empty()) return missed;
    Result<Endpoint> bound = ParseEndpoint(endpoint_);
    if (bound.ok() && HasHostName(endpoint)) {
      bound->address = endpoint.address;
      endpoint_ = bound->ToString();
    }
    const auto shortcut = bound.ok() ? ShortcutOf(*bound) : std::nullopt;
    if (shortcut.has_value()) (void)socket_.Bind(*shortcut);  // a stranger may have taken it
    return Status::Ok();
  }

  Status Start(OnMessage on_message) override {
    on_message_ = std::move(on_message);
    loop_.Start({socket_.fd()}, [this] { return Drain(); });
    return Status::Ok();
  }

  void Send(PeerId peer, Message message) override {
    loop_.RunOrPost([this, peer, message = std::move(message)]() mutable {
      if (socket_.Send(peer, std::move(message))) ++sent_;
      if (!loop_.InThread() && socket_.HasInput()) loop_.DrainAgain();
    });
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    loop_.RunAfter(delay, std::move(task));
  }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
  [[nodiscard]] TransportCounters Counters() const override {
    return {received_.load(), sent_.load(), malformed_.load()};
  }

 private:
  bool Drain() {
    for (int i = 0; i < kReceiveBatch; ++i) {
      PeerId peer = 0;
      Message message;
      const auto received = socket_.Receive(&peer, &message);
      if (received == ZmqSocket::Received::kNothing) return i > 0;
      ++received_;
      if (received == ZmqSocket::Received::kMalformed) {
        ++malformed_;
      } else {
        on_message_(peer, std::move(message));
      }
    }
    return true;
  }

  ZmqSocket socket_;
  std::string endpoint_;
  OnMessage on_message_;
  std::atomic<uint64_t> received_{0}, sent_{0}, malformed_{0};
  IoThread loop_;  // last: stops before what it uses goes
};

class ZmqClient final : public ClientTransport {
 public:
  ZmqClient(Endpoint endpoint, bool ahead)
      : socket_(Direction::kToServer), ahead_(ahead), endpoint_(std::move(endpoint)) {}
  ~ZmqClient() override { loop_.Stop(); }

  // Checks that ZeroMQ likes the endpoint; connections come with Start.
  Status Open() {
    Status opened;
    const auto open = [&] { opened = socket_.Open(1); };
    ahead_ ? StartAheadOfTurns(open) : open();
    WEIR_RETURN_IF_ERROR(opened);
    return socket_.Watch();
  }

  Status Start(OnMessage on_message, OnConnect on_connect) override {
    on_message_ = std::move(on_message);
    on_connect_ = std::move(on_connect);
    const bool named = HasHostName(endpoint_);  // whoever starts us shall not wait for DNS
    if (!named) WEIR_RETURN_IF_ERROR(Connect());
    loop_.Start(
        {socket_.fd(), socket_.watch_fd()}, [this] { return Drain(); }, ahead_);
    if (named) loop_.Post([this] { (void)Connect(); });
    return Status::Ok();
  }

  void Send(Message message) override {
    loop_.RunOrPost([this, message = std::move(message)]() mutable {
      (void)socket_.Send(0, std::move(message));
      if (!loop_.InThread() && socket_.HasInput()) loop_.DrainAgain();
    });
  }
  [[nodiscard]] bool broken() const override { return broken_; }
  void Reset() override {
    loop_.Post([this] { ConnectAnew(); });
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    loop_.RunAfter(delay, std::move(task));
  }

 private:
  Status Connect() {
    failed_ = 0;
    way_ = ShortestWayTo(endpoint_);
    addresses_ = 1;
    if (HasHostName(endpoint_) && way_ == endpoint_.ToString()) {
      const auto all = Resolve(endpoint_);
      if (!all.ok()) return all.status();  // Reset looks again
      addresses_ = all->size();
      way_ = (*all)[turn_ % addresses_].ToString();
    }
    return socket_.Connect(way_);
  }
  void ConnectAnew() {
    (void)socket_.Disconnect(way_);
    (void)Connect();
  }
  // The addresses of a host take turns until one answers: at once when they are new to us, later
  // with the pauses that ZeroMQ makes between its attempts.
  void CountFailed(int attempts) {
    failed_ += attempts;
    if (addresses_ < 2 || failed_ < (turn_ + 1 < addresses_ ? 1 : kAttemptsAtAddress)) return;
    ++turn_;
    ConnectAnew();
  }
  bool Drain() {
    const ZmqSocket::Events events = socket_.TakeEvents();
    if (events.lost || events.connected) broken_ = events.lost;
    if (events.connected) on_connect_();
    if (events.failed > 0 && !events.connected) CountFailed(events.failed);
    bool worked = events.lost || events.connected;
    for (int i = 0; i < kReceiveBatch; ++i) {
      PeerId peer = 0;
      Message message;
      const auto received = socket_.Receive(&peer, &message);
      if (received == ZmqSocket::Received::kNothing) return worked;
      worked = true;
      if (received == ZmqSocket::Received::kMessage) on_message_(std::move(message));
    }
    return true;
  }

  ZmqSocket socket_;
  const bool ahead_;
  const Endpoint endpoint_;
  std::string way_;       // where it connects to: the shortcut, or an address
  size_t addresses_ = 1;  // of the host
  size_t turn_ = 0;       // of the address that is tried
  int failed_ = 0;        // attempts at it
  OnMessage on_message_;
  OnConnect on_connect_;
  std::atomic<bool> broken_{false};
  IoThread loop_;  // last: stops before what it uses goes
};

// Whether somebody accepts connections on a socket file. ZeroMQ would silently unlink it.
bool IsAlive(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const bool alive = result == 0 || errno == EAGAIN;  // EAGAIN: its backlog is full
  close(fd);
  return alive;
}

class ZmqNetwork final : public Network {
 public:
  Result<std::unique_ptr<ServerTransport>> Listen(const std::string& text) override {
    WEIR_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    if (endpoint.kind == Endpoint::Kind::kInproc) return inproc_.Listen(endpoint.ToString());
    WEIR_RETURN_IF_ERROR(CheckFilesLeft(endpoint));
    return ListenZmq(endpoint);
  }
  Result<std::unique_ptr<ClientTransport>> Dial(const std::string& text) override {
    WEIR_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    if (endpoint.kind == Endpoint::Kind::kInproc) return inproc_.Dial(endpoint.ToString());
    WEIR_RETURN_IF_ERROR(CheckFilesLeft(endpoint));
    return DialZmq(endpoint);
  }
  Result<std::unique_ptr<ServerTransport>> ListenPrompt(const std::string& text) override {
    WEIR_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    WEIR_RETURN_IF_ERROR(CheckFilesLeft(endpoint));
    const auto name = PromptNameOf(endpoint);
    if (name.has_value()) return ListenUnix(*name);
    return Status(ErrorCode::kNotSupported, endpoint.ToString() + " has no name for this machine");
  }
  Result<std::unique_ptr<ClientTransport>> DialPrompt(const std::string& text) override {
    WEIR_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    if (endpoint.kind == Endpoint::Kind::kInproc) return inproc_.Dial(endpoint.ToString());
    WEIR_RETURN_IF_ERROR(CheckFilesLeft(endpoint));
    const auto name = PromptNameOf(endpoint);
    if (name.has_value()) return DialUnix(*name);
    return DialZmq(endpoint, true);
  }
  [[nodiscard]] bool LargeDelaySmall(const std::string& text) const override {
    const Result<Endpoint> endpoint = ParseEndpoint(text);
    return endpoint.ok() && endpoint->kind != Endpoint::Kind::kInproc;
  }

 private:
  InprocHub inproc_;
};

}  // namespace

Result<std::unique_ptr<ServerTransport>> ListenZmq(const Endpoint& endpoint) {
  if (endpoint.kind == Endpoint::Kind::kIpc && IsAlive(endpoint.address)) {
    return {ErrorCode::kBusy, "cannot listen on " + endpoint.ToString() + ": already in use"};
  }
  auto server = std::make_unique<ZmqServer>();
  WEIR_RETURN_IF_ERROR(server->Bind(endpoint));
  return std::unique_ptr<ServerTransport>(std::move(server));
}

Result<std::unique_ptr<ClientTransport>> DialZmq(const Endpoint& endpoint, bool ahead) {
  if (endpoint.kind == Endpoint::Kind::kTcp && endpoint.port == 0) {
    return {ErrorCode::kInvalid, "cannot dial " + endpoint.ToString() + ": port 0 is no server's"};
  }
  auto client = std::make_unique<ZmqClient>(endpoint, ahead);
  WEIR_RETURN_IF_ERROR(client->Open());
  return std::unique_ptr<ClientTransport>(std::move(client));
}

std::unique_ptr<Network> MakeZmqNetwork() {
  return std::make_unique<ZmqNetwork>();
}

}  // namespace weir::net
