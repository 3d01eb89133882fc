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
  SimServer(SimNetwork& network, std::string endpoint)
      : network_(network), endpoint_(std::move(endpoint)) {}
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
  std::string endpoint_;
  OnMessage on_message_;
  net::TransportCounters counters_;
  std::shared_ptr<std::function<void()>> timer_;
};

class SimClient final : public net::ClientTransport {
 public:
  SimClient(SimNetwork& network, std::string endpoint)
      : network_(network), endpoint_(std::move(endpoint)) {}
  ~SimClient() override {
    network_.clients_.erase(this);
    network_.peers_.erase(peer_);
  }

  Status Start(OnMessage on_message, OnConnect on_connect) override {
    on_message_ = std::move(on_message);
    on_connect_ = std::move(on_connect);
    network_.clients_[this] = endpoint_;
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
    network_.peers_.erase(peer_);
    peer_ = 0;
    dialling_ = std::make_shared<int>();
    network_.At(network_.clock_.Now() + network_.options_.redial_delay,
                [this, alive = std::weak_ptr(dialling_)] {
                  if (!alive.expired()) TryConnect();
                });
  }
  [[nodiscard]] PeerId peer() const { return peer_; }

 private:
  void TryConnect() {
    if (!network_.servers_.contains(endpoint_)) return Reset();
    peer_ = network_.AddPeer(endpoint_, [this](Message message) {
      if (net::DecodeEnvelope(Direction::kToClient, message.header).ok()) {
        on_message_(std::move(message));
      }
    });
    on_connect_();
  }

  SimNetwork& network_;
  std::string endpoint_;
  OnMessage on_message_;
  OnConnect on_connect_;
  PeerId peer_ = 0;
  std::shared_ptr<std::function<void()>> timer_;
  std::shared_ptr<int> dialling_;  // the current attempt; an older one is void
};

SimNetwork::SimNetwork(ManualClock& clock, uint64_t seed, SimNetworkOptions options)
    : clock_(clock), prng_(seed), options_(options) {}

SimNetwork::~SimNetwork() {
  WEIR_CHECK(servers_.empty() && clients_.empty(), "a transport outlives its network");
}

Result<std::unique_ptr<net::ServerTransport>> SimNetwork::Listen(const std::string& endpoint) {
  if (servers_.contains(endpoint)) {
    return {ErrorCode::kBusy, "cannot listen on " + endpoint + ": already in use"};
  }
  auto server = std::make_unique<SimServer>(*this, endpoint);
  servers_[endpoint] = server.get();
  // Whoever was connected to a former server there notices now.
  std::erase_if(peers_, [&](const auto& peer) { return peer.second.endpoint == endpoint; });
  for (const auto& [client, dialled] : clients_) {
    if (dialled == endpoint) client->Reset();
  }
  return std::unique_ptr<net::ServerTransport>(std::move(server));
}

Result<std::unique_ptr<net::ClientTransport>> SimNetwork::Dial(const std::string& endpoint) {
  return std::unique_ptr<net::ClientTransport>(new SimClient(*this, endpoint));
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

PeerId SimNetwork::AddPeer(const std::string& endpoint, std::function<void(Message)> on_message) {
  peers_[++last_peer_] = {endpoint, std::move(on_message), {}, {}};
  return last_peer_;
}

void SimNetwork::Deliver(PeerId id, bool to_server, const Message& message) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  ++messages_sent_;
  if (prng_.Chance(options_.disconnect)) {
    for (const auto& [client, endpoint] : clients_) {
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
    At(last, [this, id, to_server, message] {
      --in_flight_;
      const auto peer = peers_.find(id);
      if (peer == peers_.end()) return;
      if (!to_server) {
        // A copy: the callback may end the connection.
        const auto on_message = peer->second.on_message;
        return on_message(message);
      }
      const auto server = servers_.find(peer->second.endpoint);
      if (server != servers_.end()) server->second->Receive(id, message);
    });
  }
}

void SimNetwork::Inject(const std::string& endpoint, Message message,
                        std::function<void(Message)> on_answer) {
  Deliver(AddPeer(endpoint, std::move(on_answer)), true, message);
}

}  // namespace weir::testing
