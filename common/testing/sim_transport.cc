#include "common/testing/sim_transport.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/net/envelope.h"

namespace weir::testing {

using net::Direction;
using net::Message;
using net::PeerId;

// Events hold `alive` weakly: what is due after the end of a transport does nothing.
class SimServer final : public net::ServerTransport {
 public:
  SimServer(SimNetwork& network, std::string node, std::string endpoint)
      : network_(network), node_(std::move(node)), endpoint_(std::move(endpoint)) {}
  ~SimServer() override { network_.servers_.erase(endpoint_); }

  Status Start(OnMessage on_message) override {
    on_message_ = std::move(on_message);
    return Status::Ok();
  }
  void Send(PeerId peer, Message message) override {
    ++counters_.sent;
    network_.Deliver(peer, false, message);
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    timer_ = std::make_shared<std::function<void()>>(std::move(task));
    network_.At(network_.clock_.Now() + std::max(delay, Duration(0)),
                [timer = std::weak_ptr(timer_)] {
                  if (const auto due = timer.lock()) (*due)();
                });
  }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
  [[nodiscard]] net::TransportCounters Counters() const override { return counters_; }
  [[nodiscard]] const std::string& node() const { return node_; }

  void Receive(PeerId peer, Message message) {
    ++counters_.received;
    if (!on_message_ || !net::DecodeEnvelope(Direction::kToServer, message.header).ok()) {
      ++counters_.dropped_malformed;
    } else {
      on_message_(peer, std::move(message));
    }
  }

 private:
  SimNetwork& network_;
  const std::string node_;
  std::string endpoint_;
  OnMessage on_message_;
  net::TransportCounters counters_;
  std::shared_ptr<std::function<void()>> timer_;
};

class SimClient final : public net::ClientTransport {
 public:
  SimClient(SimNetwork& network, std::string node, std::string endpoint)
      : network_(network),
        id_(++network.last_client_),
        node_(std::move(node)),
        endpoint_(std::move(endpoint)) {}
  ~SimClient() override {
    network_.clients_.erase(id_);
    network_.Break(peer_);
  }

  Status Start(OnMessage on_message, OnConnect on_connect) override {
    on_message_ = std::move(on_message);
    on_connect_ = std::move(on_connect);
    network_.clients_[id_] = this;
    Reset();
    return Status::Ok();
  }
  void Send(Message message) override {
    if (network_.peers_.contains(peer_)) network_.Deliver(peer_, true, message);
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    timer_ = std::make_shared<std::function<void()>>(std::move(task));
    network_.At(network_.clock_.Now() + std::max(delay, Duration(0)),
                [timer = std::weak_ptr(timer_)] {
                  if (const auto due = timer.lock()) (*due)();
                });
  }
  void Reset() override {
    network_.Break(peer_);
    peer_ = 0;
    dialling_ = std::make_shared<int>();
    network_.At(network_.clock_.Now() + network_.options_.redial_delay,
                [this, alive = std::weak_ptr(dialling_)] {
                  if (!alive.expired()) TryConnect();
                });
  }
  [[nodiscard]] PeerId peer() const { return peer_; }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

 private:
  void TryConnect() {
    const auto server = network_.servers_.find(endpoint_);
    if (server == network_.servers_.end()) return Reset();
    if (network_.Apart(node_, server->second->node())) return Reset();
    peer_ = network_.AddPeer(node_, endpoint_, [this](Message message) {
      if (net::DecodeEnvelope(Direction::kToClient, message.header).ok()) {
        on_message_(std::move(message));
      }
    });
    on_connect_();
  }

  SimNetwork& network_;
  const uint64_t id_;
  const std::string node_;
  std::string endpoint_;
  OnMessage on_message_;
  OnConnect on_connect_;
  PeerId peer_ = 0;
  std::shared_ptr<std::function<void()>> timer_;
  std::shared_ptr<int> dialling_;  // the current attempt; an older one is void
};

class SimNode final : public net::Network {
 public:
  SimNode(SimNetwork& network, std::string name) : network_(network), name_(std::move(name)) {}
  Result<std::unique_ptr<net::ServerTransport>> Listen(const std::string& endpoint) override {
    return network_.ListenAt(name_, endpoint);
  }
  Result<std::unique_ptr<net::ClientTransport>> Dial(const std::string& endpoint) override {
    return std::unique_ptr<net::ClientTransport>(new SimClient(network_, name_, endpoint));
  }

 private:
  SimNetwork& network_;
  const std::string name_;
};

SimNetwork::SimNetwork(ManualClock& clock, uint64_t seed, SimNetworkOptions options)
    : clock_(clock), prng_(seed), options_(options) {}

SimNetwork::~SimNetwork() {
  WEIR_CHECK(servers_.empty() && clients_.empty(), "a transport outlives its network");
}

Result<std::unique_ptr<net::ServerTransport>> SimNetwork::Listen(const std::string& endpoint) {
  return ListenAt("", endpoint);
}

Result<std::unique_ptr<net::ServerTransport>> SimNetwork::ListenAt(const std::string& node,
                                                                   const std::string& endpoint) {
  if (servers_.contains(endpoint)) {
    return {ErrorCode::kBusy, "cannot listen on " + endpoint + ": already in use"};
  }
  auto server = std::make_unique<SimServer>(*this, node, endpoint);
  servers_[endpoint] = server.get();
  // Whoever was connected to a former server there notices now.
  std::erase_if(peers_, [&](const auto& peer) { return peer.second.endpoint == endpoint; });
  for (const auto& [id, client] : clients_) {
    if (client->endpoint() == endpoint) client->Reset();
  }
  return std::unique_ptr<net::ServerTransport>(std::move(server));
}

Result<std::unique_ptr<net::ClientTransport>> SimNetwork::Dial(const std::string& endpoint) {
  return std::unique_ptr<net::ClientTransport>(new SimClient(*this, "", endpoint));
}

std::unique_ptr<net::Network> SimNetwork::Node(std::string name) {
  return std::make_unique<SimNode>(*this, std::move(name));
}

void SimNetwork::Cut(const std::string& a, const std::string& b) {
  cuts_.emplace(a, b);
  cuts_.emplace(b, a);
}

void SimNetwork::Heal() {
  cuts_.clear();
}

std::string SimNetwork::NodeOf(const std::string& endpoint) const {
  const auto server = servers_.find(endpoint);
  return server == servers_.end() ? "" : server->second->node();
}

bool SimNetwork::Apart(const std::string& a, const std::string& b) const {
  return dead_.contains(a) || dead_.contains(b) || cuts_.contains({a, b});
}

void SimNetwork::At(TimePoint when, Task task) {
  events_.emplace(std::pair(when, next_event_++), std::move(task));
}

bool SimNetwork::Step(TimePoint until) {
  if (events_.empty() || events_.begin()->first.first > until) return false;
  auto node = events_.extract(events_.begin());
  clock_.Set(std::max(clock_.Now(), node.key().first));
  node.mapped()();
  return true;
}

void SimNetwork::RunFor(Duration duration) {
  const TimePoint until = clock_.Now() + duration;
  while (Step(until)) {
  }
  clock_.Set(until);
}

bool SimNetwork::RunUntil(const std::function<bool()>& done, Duration limit) {
  const TimePoint until = clock_.Now() + limit;
  while (!done()) {
    if (!Step(until)) return false;
  }
  return true;
}

void SimNetwork::RunUntilIdle() {
  while (in_flight_ > 0 && Step(TimePoint::Max())) {
  }
}

PeerId SimNetwork::AddPeer(const std::string& node, const std::string& endpoint,
                           std::function<void(Message)> on_message) {
  peers_[++last_peer_] = {node, endpoint, std::move(on_message), {}, {}};
  return last_peer_;
}

void SimNetwork::Break(PeerId id) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;
  const bool under_way = peer->second.last_arrival_to_server > clock_.Now();
  if (!under_way || options_.linger == 0 || !prng_.Chance(options_.linger)) {
    peers_.erase(peer);
    return;
  }
  peer->second.broken = true;
  peer->second.on_message = nullptr;
  At(peer->second.last_arrival_to_server + Duration(1), [this, id] { peers_.erase(id); });
}

void SimNetwork::Deliver(PeerId id, bool to_server, const Message& message) {
  const auto it = peers_.find(id);
  if (it == peers_.end() || it->second.broken) return;
  const std::string server = NodeOf(it->second.endpoint);
  if (Apart(it->second.node, server)) return;
  ++messages_sent_;
  Message sent = message;
  if (tap_ != nullptr) {
    const Passing passing{to_server ? it->second.node : server,
                          to_server ? server : it->second.node, to_server};
    if (!tap_(passing, &sent)) return;
  }
  if (prng_.Chance(options_.disconnect)) {
    for (const auto& [number, client] : clients_) {
      if (client->peer() == id) return client->Reset();
    }
  }
  TimePoint& last =
      to_server ? it->second.last_arrival_to_server : it->second.last_arrival_to_client;
  const int copies = prng_.Chance(options_.drop) ? 0 : prng_.Chance(options_.duplicate) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const auto delay = prng_.Uniform(static_cast<uint64_t>(options_.min_delay.count()),
                                     static_cast<uint64_t>(options_.max_delay.count()));
    last = std::max(last, clock_.Now() + Duration(static_cast<int64_t>(delay)));
    ++in_flight_;
    At(last, [this, id, to_server, sent] {
      --in_flight_;
      Arrive(id, to_server, sent);
    });
  }
}

void SimNetwork::Arrive(PeerId id, bool to_server, const Message& message) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;
  if (!to_server) {
    if (dead_.contains(peer->second.node) || peer->second.broken) return;
    // A copy: the callback may end the connection.
    const auto on_message = peer->second.on_message;
    return on_message(message);
  }
  const auto server = servers_.find(peer->second.endpoint);
  if (server == servers_.end() || dead_.contains(server->second->node())) return;
  if (arrived_ != nullptr) arrived_({peer->second.node, server->second->node(), true}, message);
  server->second->Receive(id, message);
}

void SimNetwork::Inject(const std::string& endpoint, Message message,
                        std::function<void(Message)> on_answer) {
  Deliver(AddPeer("", endpoint, std::move(on_answer)), true, message);
}

}  // namespace weir::testing
