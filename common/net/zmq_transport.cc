#include "common/net/zmq_transport.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "common/base/log.h"
#include "common/base/prng.h"
#include "common/net/probe.h"
#include "common/net/resolve.h"
#include "common/net/transport_loop.h"

namespace weir::net {
namespace {

// Messages taken from a socket before others have their turn.
constexpr int kReceiveBatch = 32;
constexpr int kAttemptsAtAddress = 4;
constexpr size_t kFilesOfTransport = 24;

// Has `look` called while a descriptor may have something to offer.
class Look final : private Watcher {
 public:
  explicit Look(Reactor& reactor) : reactor_(reactor) {}
  ~Look() override { Stop(); }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;
  void Start(int fd, std::function<void()> look) {
    look_ = std::move(look);
    reactor_.Watch(fd, this);
    Again();
  }
  // In the next turn.
  void Again() { reactor_.Continue(this); }
  void Stop() {
    if (look_) reactor_.Unwatch(this);
    look_ = nullptr;
  }

 private:
  void OnReadable() override { look_(); }

  Reactor& reactor_;
  std::function<void()> look_;
};

class ZmqServer final : public ServerTransport {
 public:
  ZmqServer(ControlPlane& plane, Reactor& reactor)
      : socket_(plane.context(), Direction::kToClient),
        loop_(TransportLoop::Make(
            reactor, [this](PeerId peer, Message message) { Deliver(peer, std::move(message)); })),
        look_(reactor) {}
  ~ZmqServer() override {
    RunInLoopAndWait(loop_->reactor(), [this] {
      loop_->End();
      look_.Stop();
    });
  }

  // At every address of a host name that this machine has. The name stays what others are told: it
  // may mean another address to them.
  Status Bind(const Endpoint& endpoint) {
    WEIR_RETURN_IF_ERROR(socket_.Open());
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
    return Status::Ok();
  }

  Status Start(OnMessage on_message) override {
    on_message_ = std::move(on_message);
    loop_->Post([this] { look_.Start(socket_.fd(), [this] { Drain(); }); });
    return Status::Ok();
  }
  void Send(PeerId peer, Message message) override { loop_->Send(peer, std::move(message)); }
  void RunAfter(Duration delay, std::function<void()> task) override {
    loop_->RunAfter(delay, std::move(task));
  }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
  [[nodiscard]] TransportCounters Counters() const override {
    return {received_.load(), sent_.load(), malformed_.load()};
  }

 private:
  void Deliver(PeerId peer, Message message) {
    if (socket_.Send(peer, std::move(message))) ++sent_;
    if (socket_.HasInput()) look_.Again();
  }
  void Drain() {
    for (int i = 0; i < kReceiveBatch; ++i) {
      PeerId peer = 0;
      Message message;
      const auto received = socket_.Receive(&peer, &message);
      if (received == ZmqSocket::Received::kNothing) return;
      ++received_;
      if (received == ZmqSocket::Received::kMalformed) {
        ++malformed_;
      } else {
        on_message_(peer, std::move(message));
      }
    }
    look_.Again();
  }

  std::string endpoint_;
  OnMessage on_message_;
  std::atomic<uint64_t> received_{0}, sent_{0}, malformed_{0};
  ZmqSocket socket_;
  const std::shared_ptr<TransportLoop> loop_;
  Look look_;  // of the reactor's thread, once started
};

class ControlClient final : public ZmqClient {
 public:
  ControlClient(ControlPlane& plane, Reactor& reactor, Endpoint endpoint, OnHello on_hello)
      : plane_(plane),
        endpoint_(std::move(endpoint)),
        on_hello_(std::move(on_hello)),
        socket_(plane.context(), Direction::kToServer),
        loop_(TransportLoop::Make(
            reactor, [this](PeerId, Message message) { Deliver(std::move(message)); })),
        look_(reactor),
        watch_(reactor) {
    question_.session = RandomSeed();
  }
  ~ControlClient() override {
    RunInLoopAndWait(loop_->reactor(), [this] {
      loop_->End();
      look_.Stop();
      watch_.Stop();
    });
  }

  // Checks that ZeroMQ likes the endpoint; connections come with Start.
  Status Open() {
    WEIR_RETURN_IF_ERROR(socket_.Open());
    return socket_.Watch();
  }

  Status Start(OnMessage on_message, OnConnect on_connect) override {
    on_message_ = std::move(on_message);
    on_connect_ = std::move(on_connect);
    loop_->Post([this] {
      look_.Start(socket_.fd(), [this] { Drain(); });
      watch_.Start(socket_.watch_fd(), [this] { TakeEvents(); });
      Connect();
    });
    return Status::Ok();
  }

  void Send(Message message) override { loop_->Send(0, std::move(message)); }
  [[nodiscard]] bool broken() const override { return broken_; }
  void Reset() override {
    loop_->Post([this] { Connect(); });
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    loop_->RunAfter(delay, std::move(task));
  }
  void AskHello() override {
    if (way_.empty()) return Connect();  // the host had no address
    if (!connected_) return;
    ++question_.number;
    asking_ = true;
    Deliver(EncodeHello(question_));
  }

 private:
  // Hangs up, and dials anew.
  void Connect() {
    failed_ = 0;
    connected_ = false;
    if (!way_.empty()) (void)socket_.Disconnect(way_);
    way_.clear();
    if (!HasHostName(endpoint_)) return ConnectTo(endpoint_);
    if (std::exchange(resolving_, true)) return;
    plane_.resolver().Post([this, endpoint = endpoint_, loop = loop_] {
      const Result<std::vector<Endpoint>> all = Resolve(endpoint);
      loop->Post([this, all] { OnAddresses(all); });
    });
  }
  void OnAddresses(const Result<std::vector<Endpoint>>& all) {
    resolving_ = false;
    if (!all.ok()) return;  // who waits for an answer asks again
    addresses_ = all->size();
    ConnectTo((*all)[turn_ % addresses_]);
  }
  void ConnectTo(const Endpoint& endpoint) {
    way_ = endpoint.ToString();
    address_ = endpoint.kind == Endpoint::Kind::kTcp ? endpoint.address : "";
    const Status status = socket_.Connect(way_);
    if (status.ok()) return;
    way_.clear();
    plane_.Complain(endpoint_.ToString(), status.message());
  }
  // The addresses of a host take turns until one answers: at once when they are new to us, later
  // with the pauses that ZeroMQ makes between its attempts.
  void CountFailed(int attempts) {
    failed_ += attempts;
    if (addresses_ < 2 || failed_ < (turn_ + 1 < addresses_ ? 1 : kAttemptsAtAddress)) return;
    ++turn_;
    Connect();
  }
  void TakeEvents() {
    const ZmqSocket::Events events = socket_.TakeEvents();
    if (events.lost || events.connected) broken_ = events.lost;
    if (events.lost || events.connected) connected_ = !events.lost;
    if (events.connected) {
      AskHello();
      on_connect_();
    } else if (events.failed > 0) {
      CountFailed(events.failed);
    }
    look_.Again();
  }
  void Deliver(Message message) {
    (void)socket_.Send(0, std::move(message));
    if (socket_.HasInput()) look_.Again();
  }
  void Drain() {
    for (int i = 0; i < kReceiveBatch; ++i) {
      PeerId peer = 0;
      Message message;
      const auto received = socket_.Receive(&peer, &message);
      if (received == ZmqSocket::Received::kNothing) return;
      if (received != ZmqSocket::Received::kMessage || TakeHello(message)) continue;
      on_message_(std::move(message));
    }
    look_.Again();
  }
  bool TakeHello(const Message& message) {
    if (!asking_) return false;
    const Result<HelloAnswer> answer = DecodeHelloAnswer(message, question_);
    if (answer.code() == ErrorCode::kBadMessage) return false;
    asking_ = false;
    if (!answer.ok()) {
      plane_.Complain(endpoint_.ToString(), answer.status().message());
      return true;
    }
    plane_.Understood(endpoint_.ToString());
    if (on_hello_) on_hello_(*answer, address_);
    return true;
  }

  ControlPlane& plane_;
  const Endpoint endpoint_;
  const OnHello on_hello_;
  OnMessage on_message_;
  OnConnect on_connect_;
  std::atomic<bool> broken_{false};
  ZmqSocket socket_;
  const std::shared_ptr<TransportLoop> loop_;

  // Of the reactor's thread, once started.
  Look look_, watch_;
  std::string way_;       // where it connects to; empty: nowhere
  std::string address_;   // the host in it
  size_t addresses_ = 1;  // of the host
  size_t turn_ = 0;       // of the address that is tried
  int failed_ = 0;        // attempts at it
  bool resolving_ = false;
  bool connected_ = false;
  bool asking_ = false;
  HelloQuestion question_;
};

// ZeroMQ silently unlinks whatever lies at the path: only a socket that somebody left may go.
Status CheckSocketFile(const Endpoint& endpoint) {
  const bool is_abstract = endpoint.address.starts_with('@');
  struct stat info {};
  if (is_abstract || lstat(endpoint.address.c_str(), &info) != 0) return Status::Ok();
  if (!S_ISSOCK(info.st_mode)) {
    return {ErrorCode::kExists, "cannot listen on " + endpoint.ToString() +
                                    ": there is a file of that name, which is no socket"};
  }
  if (!MayListen(endpoint, Duration::zero())) return Status::Ok();
  return {ErrorCode::kBusy, "cannot listen on " + endpoint.ToString() + ": already in use"};
}

}  // namespace

std::shared_ptr<ZmqContext> ControlPlane::context() {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr) context_ = std::make_shared<ZmqContext>();
  return context_;
}

ResolverThread& ControlPlane::resolver() {
  const std::lock_guard lock(mutex_);
  if (resolver_ == nullptr) resolver_ = std::make_unique<ResolverThread>();
  return *resolver_;
}

void ControlPlane::Complain(const std::string& endpoint, const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    if (!complained_.insert(endpoint).second) return;
  }
  WEIR_LOG_ERROR("{}: {}", endpoint, what);
}

void ControlPlane::Understood(const std::string& endpoint) {
  const std::lock_guard lock(mutex_);
  complained_.erase(endpoint);
}

Status CheckFilesLeft(const Endpoint& endpoint) {
  std::array<int, kFilesOfTransport> files{};
  size_t got = 0;
  while (got < files.size() && (files[got] = eventfd(0, EFD_CLOEXEC)) >= 0) ++got;
  for (size_t i = 0; i < got; ++i) close(files[i]);
  if (got == files.size()) return Status::Ok();
  return {ErrorCode::kIo, "no connection for " + endpoint.ToString() +
                              ": too many files are open (raise ulimit -n)"};
}

Result<std::unique_ptr<ServerTransport>> ListenZmq(ControlPlane& plane, Reactor& reactor,
                                                   const Endpoint& endpoint) {
  WEIR_RETURN_IF_ERROR(CheckFilesLeft(endpoint));
  if (endpoint.kind == Endpoint::Kind::kIpc) WEIR_RETURN_IF_ERROR(CheckSocketFile(endpoint));
  auto server = std::make_unique<ZmqServer>(plane, reactor);
  WEIR_RETURN_IF_ERROR(server->Bind(endpoint));
  return std::unique_ptr<ServerTransport>(std::move(server));
}

Result<std::unique_ptr<ZmqClient>> ZmqClient::Dial(ControlPlane& plane, Reactor& reactor,
                                                   const Endpoint& endpoint, OnHello on_hello) {
  WEIR_RETURN_IF_ERROR(CheckFilesLeft(endpoint));
  auto client = std::make_unique<ControlClient>(plane, reactor, endpoint, std::move(on_hello));
  WEIR_RETURN_IF_ERROR(client->Open());
  return std::unique_ptr<ZmqClient>(std::move(client));
}

}  // namespace weir::net
