#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "common/base/prng.h"
#include "common/net/abstract_socket.h"
#include "common/net/hello.h"
#include "common/net/resolve.h"
#include "common/net/stream_connection.h"
#include "common/net/stream_transport.h"
#include "common/net/tcp_socket.h"
#include "common/net/transport_loop.h"

namespace weir::net {
namespace {

constexpr int kAcceptedAtOnce = 16;

// Accepts at one listening socket.
class Acceptor final : private Watcher {
 public:
  using OnSocket = std::function<void(int)>;
  Acceptor(Reactor& reactor, int listener)
      : reactor_(reactor), listener_(listener), spare_(open("/dev/null", O_CLOEXEC)) {}
  // On the reactor's thread once it is started.
  ~Acceptor() override {
    if (on_socket_) reactor_.Unwatch(this);
    close(listener_);
    if (spare_ >= 0) close(spare_);
  }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void Start(OnSocket on_socket) {
    on_socket_ = std::move(on_socket);
    reactor_.Watch(listener_, this);
  }

 private:
  void OnReadable() override {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket >= 0) {
        on_socket_(socket);
        continue;
      }
      if (errno == EAGAIN) return;
      const bool no_descriptor = errno == EMFILE || errno == ENFILE;
      if (no_descriptor && !HangUpOnOne()) return;
    }
    reactor_.Continue(this);
  }
  // With no descriptor left a peer could not even be told to go away. False: nobody waits.
  bool HangUpOnOne() {
    if (spare_ >= 0) close(spare_);
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) close(socket);
    spare_ = open("/dev/null", O_CLOEXEC);
    return socket >= 0;
  }

  Reactor& reactor_;
  const int listener_;
  int spare_;
  OnSocket on_socket_;
};

class StreamServer final : public ServerTransport {
 public:
  StreamServer(Reactor& reactor, const Endpoint& address)
      : endpoint_(address.ToString()),
        loop_(TransportLoop::Make(
            reactor, [this](PeerId peer, Message message) { Deliver(peer, std::move(message)); })) {
    streams_.id = RandomSeed();
  }
  ~StreamServer() override {
    RunInLoopAndWait(loop_->reactor(), [this] {
      loop_->End();
      acceptors_.clear();
      for (const auto& [id, peer] : peers_) peer.connection->Close();
    });
  }

  Status Listen(const Endpoint& address) {
    WEIR_RETURN_IF_ERROR(ListenUnix());
    if (address.kind != Endpoint::Kind::kTcp) return {};
    WEIR_ASSIGN_OR_RETURN(const std::vector<Endpoint> addresses, Resolve(address));
    WEIR_ASSIGN_OR_RETURN(const TcpListeners listeners, ListenTcp(addresses));
    for (const int socket : listeners.sockets) Own(socket);
    streams_.endpoints.push_back("tcp://*:" + std::to_string(listeners.port));
    return {};
  }

  Status Start(OnMessage on_message) override {
    on_message_ = std::move(on_message);
    loop_->Post([this] {
      bool tcp = false;  // all but the first
      for (const auto& acceptor : acceptors_) {
        acceptor->Start([this, tcp](int socket) { Accept(socket, tcp); });
        tcp = true;
      }
    });
    return {};
  }
  void Send(PeerId peer, Message message) override { loop_->Send(peer, std::move(message)); }
  void RunAfter(Duration delay, std::function<void()> task) override {
    loop_->RunAfter(delay, std::move(task));
  }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
  [[nodiscard]] StreamAddresses streams() const override { return streams_; }
  [[nodiscard]] TransportCounters Counters() const override {
    return {received_.load(), sent_.load(), malformed_.load()};
  }

 private:
  struct Peer {
    std::shared_ptr<StreamConnection> connection;
    bool started = false;  // its HELLO has come
  };

  void Own(int listener) {
    acceptors_.push_back(std::make_unique<Acceptor>(loop_->reactor(), listener));
  }
  Status ListenUnix() {
    std::string name = "@weirfs-";
    for (int i = 0; i < 2; ++i) name += std::to_string(RandomSeed());
    WEIR_ASSIGN_OR_RETURN(const int listener, ListenAt(name));
    Own(listener);
    streams_.endpoints.push_back("unix:" + name);
    return {};
  }
  void Accept(int socket, bool tcp) {
    if (tcp) SetUpTcp(socket);
    const PeerId id = next_peer_++;
    StreamConnection::Events events;
    events.on_message = [this, id](Message message) { Receive(id, std::move(message)); };
    events.on_end = [this, id](StreamConnection::Ended how) {
      if (how == StreamConnection::Ended::kRubbish) ++malformed_;
      peers_.erase(id);
    };
    peers_[id].connection =
        StreamConnection::Make(loop_->reactor(), socket, Direction::kToClient, std::move(events));
  }
  void Receive(PeerId id, Message message) {
    Peer& peer = peers_.at(id);
    if (peer.started) {
      received_.fetch_add(1, std::memory_order_relaxed);
      return on_message_(id, std::move(message));
    }
    peer.started = IsStreamStart(message, streams_.id);
    if (peer.started) return;
    ++malformed_;
    peer.connection->Close();
    peers_.erase(id);
  }
  void Deliver(PeerId id, Message message) {
    const auto peer = peers_.find(id);
    if (peer == peers_.end()) return;
    sent_.fetch_add(1, std::memory_order_relaxed);
    peer->second.connection->Send(std::move(message));
  }

  const std::string endpoint_;
  StreamAddresses streams_;
  OnMessage on_message_;
  std::atomic<uint64_t> received_{0}, sent_{0}, malformed_{0};
  const std::shared_ptr<TransportLoop> loop_;

  // Of the reactor's thread, once started.
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::unordered_map<PeerId, Peer> peers_;
  PeerId next_peer_ = kFirstStreamPeer;
};

}  // namespace

Result<std::unique_ptr<ServerTransport>> ListenStreams(Reactor& reactor, const Endpoint& address) {
  auto server = std::make_unique<StreamServer>(reactor, address);
  WEIR_RETURN_IF_ERROR(server->Listen(address));
  return std::unique_ptr<ServerTransport>(std::move(server));
}

}  // namespace weir::net
