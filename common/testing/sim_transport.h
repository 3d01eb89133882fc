// SimNetwork: transports without sockets or threads, on a ManualClock, cranked by the test.
//
// Messages, timers and connections are events at virtual times; RunFor and RunUntil take them in
// order and move the clock. One seed decides what is lost, doubled, delayed and when connections
// break, so a failure repeats. Messages of one connection stay in order; a broken connection loses
// what is under way, or (`linger`) its server still gets that, maybe later than what the client has
// sent again meanwhile, and the client dials again. Machines (Node) may be cut off from each other
// and may die. Not modelled: bandwidth.
// Threads: one. Lifetime: outlives its transports and nodes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/base/prng.h"
#include "common/net/transport.h"
#include "common/testing/manual_clock.h"

namespace weir::testing {

struct SimNetworkOptions {
  double drop = 0;        // of each message
  double duplicate = 0;   // of each message
  double disconnect = 0;  // at each message: its connection breaks
  double linger = 0;      // of each broken connection: what is under way to the server arrives
  Duration min_delay = std::chrono::microseconds(10);
  Duration max_delay = std::chrono::microseconds(100);
  Duration redial_delay = std::chrono::milliseconds(50);
};

class SimNetwork final : public net::Network {
 public:
  using Task = std::function<void()>;

  SimNetwork(ManualClock& clock, uint64_t seed, SimNetworkOptions options = {});
  ~SimNetwork() override;

  // As a machine without a name, which is never cut off.
  Result<std::unique_ptr<net::ServerTransport>> Listen(const std::string& endpoint) override;
  Result<std::unique_ptr<net::ClientTransport>> Dial(const std::string& endpoint) override;
  // The network as the machine of that name sees it.
  std::unique_ptr<net::Network> Node(std::string name);

  // Messages between two machines vanish, and no connection is made, until Heal.
  void Cut(const std::string& a, const std::string& b);
  void Heal();
  // The machine dies: nobody hears of it what it still says, and nothing reaches it; then its
  // transports are to be destroyed. Revive before it gets new ones.
  void Kill(const std::string& node) { dead_.insert(node); }
  void Revive(const std::string& node) { dead_.erase(node); }

  // Sees every message as it is sent, and may change it; false: it vanishes.
  struct Passing {
    const std::string& from;
    const std::string& to;
    bool to_server;
  };
  using Tap = std::function<bool(const Passing&, net::Message*)>;
  void SetTap(Tap tap) { tap_ = std::move(tap); }

  // Sees every message that a server gets, right before that.
  using Arrived = std::function<void(const Passing&, const net::Message&)>;
  void SetOnArrival(Arrived arrived) { arrived_ = std::move(arrived); }

  // Faults from here on.
  void SetOptions(const SimNetworkOptions& options) { options_ = options; }
  // Runs `task` in its turn.
  void At(TimePoint when, Task task);
  // Takes every event of the next `duration`.
  void RunFor(Duration duration);
  // Takes events until `done` says so; false when `limit` passed first.
  bool RunUntil(const std::function<bool()>& done, Duration limit);
  // Takes events until no message is under way (timers that come due meanwhile run too).
  void RunUntilIdle();

  // A message of unknown kind from a new, foreign connection to a server; answers to it are given
  // to `on_answer`.
  void Inject(const std::string& endpoint, net::Message message,
              std::function<void(net::Message)> on_answer);
  [[nodiscard]] uint64_t messages_sent() const { return messages_sent_; }

 private:
  friend class SimServer;
  friend class SimClient;
  friend class SimNode;
  struct Peer {
    std::string node;  // of the client
    std::string endpoint;
    std::function<void(net::Message)> on_message;
    TimePoint last_arrival_to_server, last_arrival_to_client;
    bool broken = false;  // only what is under way still arrives
  };
  Result<std::unique_ptr<net::ServerTransport>> ListenAt(const std::string& node,
                                                         const std::string& endpoint);
  bool Step(TimePoint until);
  net::PeerId AddPeer(const std::string& node, const std::string& endpoint,
                      std::function<void(net::Message)> on_message);
  void Break(net::PeerId peer);
  [[nodiscard]] std::string NodeOf(const std::string& endpoint) const;
  [[nodiscard]] bool Apart(const std::string& a, const std::string& b) const;
  void Deliver(net::PeerId peer, bool to_server, const net::Message& message);
  void Arrive(net::PeerId peer, bool to_server, const net::Message& message);

  ManualClock& clock_;
  Prng prng_;
  SimNetworkOptions options_;
  Tap tap_;
  Arrived arrived_;
  std::map<std::pair<TimePoint, uint64_t>, Task> events_;  // ties in order of creation
  uint64_t next_event_ = 0;
  uint64_t in_flight_ = 0;
  uint64_t messages_sent_ = 0;
  std::map<std::string, class SimServer*> servers_;
  std::map<uint64_t, class SimClient*> clients_;  // in order of their making
  uint64_t last_client_ = 0;
  std::map<net::PeerId, Peer> peers_;
  net::PeerId last_peer_ = 0;
  std::set<std::pair<std::string, std::string>> cuts_;  // both ways round
  std::set<std::string> dead_;
};

}  // namespace weir::testing
