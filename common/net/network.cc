// Which transport an endpoint gets.
#include <mutex>
#include <utility>

#include "common/net/inproc_transport.h"
#include "common/net/stream_transport.h"
#include "common/net/zmq_finder.h"
#include "common/net/zmq_transport.h"
#include "common/reactor/reactor.h"

namespace weir::net {
namespace {

// A server's control endpoint and its streams, on one reactor.
class BothPlanes final : public ServerTransport {
 public:
  BothPlanes(std::unique_ptr<ServerTransport> control, std::unique_ptr<ServerTransport> streams)
      : control_(std::move(control)), streams_(std::move(streams)) {}

  Status Start(OnMessage on_message) override {
    WEIR_RETURN_IF_ERROR(streams_->Start(on_message));
    return control_->Start(std::move(on_message));
  }
  void Send(PeerId peer, Message message) override {
    ServerTransport& plane = peer >= kFirstStreamPeer ? *streams_ : *control_;
    plane.Send(peer, std::move(message));
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    streams_->RunAfter(delay, std::move(task));
  }
  [[nodiscard]] const std::string& endpoint() const override { return control_->endpoint(); }
  [[nodiscard]] StreamAddresses streams() const override { return streams_->streams(); }
  [[nodiscard]] TransportCounters Counters() const override {
    TransportCounters all = streams_->Counters();
    const TransportCounters control = control_->Counters();
    all.received += control.received;
    all.sent += control.sent;
    all.dropped_malformed += control.dropped_malformed;
    return all;
  }

 private:
  const std::unique_ptr<ServerTransport> control_, streams_;
};

// What the views of one network share.
class Shared {
 public:
  Result<Reactor*> OwnReactor() {
    const std::lock_guard lock(mutex_);
    if (own_reactor_ == nullptr) {
      Reactor::Options options;
      options.name = "net";
      WEIR_ASSIGN_OR_RETURN(own_reactor_, Reactor::Create(options));
      own_reactor_->Start();
    }
    return own_reactor_.get();
  }
  ControlPlane& plane() { return plane_; }
  InprocHub& inproc() { return inproc_; }

 private:
  std::mutex mutex_;
  std::unique_ptr<Reactor> own_reactor_;  // made when the first transport needs it
  ControlPlane plane_;
  InprocHub inproc_;
};

class SocketNetwork final : public Network {
 public:
  SocketNetwork(std::shared_ptr<Shared> shared, Reactor* reactor)
      : shared_(std::move(shared)), reactor_(reactor) {}

  Result<std::unique_ptr<ServerTransport>> Listen(const std::string& text) override {
    WEIR_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    WEIR_ASSIGN_OR_RETURN(Reactor* const reactor, ReactorOfOurs());
    if (endpoint.kind == Endpoint::Kind::kInproc) {
      return shared_->inproc().Listen(endpoint.ToString(), *reactor);
    }
    WEIR_ASSIGN_OR_RETURN(auto control, ListenZmq(shared_->plane(), *reactor, endpoint));
    WEIR_ASSIGN_OR_RETURN(auto streams, ListenStreams(*reactor, endpoint));
    return std::unique_ptr<ServerTransport>(
        std::make_unique<BothPlanes>(std::move(control), std::move(streams)));
  }
  Result<std::unique_ptr<ClientTransport>> Dial(const std::string& text) override {
    WEIR_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    WEIR_ASSIGN_OR_RETURN(Reactor* const reactor, ReactorOfOurs());
    if (endpoint.kind == Endpoint::Kind::kInproc) {
      return shared_->inproc().Dial(endpoint.ToString(), *reactor);
    }
    WEIR_RETURN_IF_ERROR(CheckDial(endpoint));
    return DialStreams(*reactor, MakeZmqFinder(shared_->plane(), *reactor, endpoint));
  }
  Result<std::unique_ptr<ClientTransport>> DialControl(const std::string& text) override {
    WEIR_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    WEIR_ASSIGN_OR_RETURN(Reactor* const reactor, ReactorOfOurs());
    if (endpoint.kind == Endpoint::Kind::kInproc) {
      return shared_->inproc().Dial(endpoint.ToString(), *reactor);
    }
    WEIR_RETURN_IF_ERROR(CheckDial(endpoint));
    WEIR_ASSIGN_OR_RETURN(auto client, ZmqClient::Dial(shared_->plane(), *reactor, endpoint));
    return std::unique_ptr<ClientTransport>(std::move(client));
  }
  std::unique_ptr<Network> On(Reactor& reactor) override {
    return std::make_unique<SocketNetwork>(shared_, &reactor);
  }
  [[nodiscard]] bool LargeDelaySmall(const std::string& text) const override {
    const Result<Endpoint> endpoint = ParseEndpoint(text);
    return endpoint.ok() && endpoint->kind != Endpoint::Kind::kInproc;
  }

 private:
  Result<Reactor*> ReactorOfOurs() {
    if (reactor_ != nullptr) return reactor_;
    return shared_->OwnReactor();
  }
  static Status CheckDial(const Endpoint& endpoint) {
    if (endpoint.kind == Endpoint::Kind::kTcp && endpoint.port == 0) {
      return {ErrorCode::kInvalid,
              "cannot dial " + endpoint.ToString() + ": port 0 is no server's"};
    }
    return CheckFilesLeft(endpoint);
  }

  const std::shared_ptr<Shared> shared_;
  Reactor* const reactor_;  // null: the shared one
};

// A network without reactors, as whoever has one sees it.
class SameNetwork final : public Network {
 public:
  explicit SameNetwork(Network& network) : network_(network) {}
  Result<std::unique_ptr<ServerTransport>> Listen(const std::string& endpoint) override {
    return network_.Listen(endpoint);
  }
  Result<std::unique_ptr<ClientTransport>> Dial(const std::string& endpoint) override {
    return network_.Dial(endpoint);
  }
  Result<std::unique_ptr<ClientTransport>> DialControl(const std::string& endpoint) override {
    return network_.DialControl(endpoint);
  }
  [[nodiscard]] bool LargeDelaySmall(const std::string& endpoint) const override {
    return network_.LargeDelaySmall(endpoint);
  }

 private:
  Network& network_;
};

}  // namespace

std::unique_ptr<Network> Network::On(Reactor& /*reactor*/) {
  return std::make_unique<SameNetwork>(*this);
}

std::unique_ptr<Network> MakeNetwork(Reactor* reactor) {
  return std::make_unique<SocketNetwork>(std::make_shared<Shared>(), reactor);
}

}  // namespace weir::net
