// SimNetwork: transports without sockets or threads, on a ManualClock, cranked by the test.
//
// Messages, timers and connections are events at virtual times; RunFor and RunUntil take them in
// order and move the clock. One seed decides what is lost, doubled, delayed and when connections
// break, so a failure repeats. Messages of one connection stay in order; a broken connection loses
// what is under way and the client dials again. Not modelled: bandwidth.
// Threads: one. Lifetime: outlives its transports.
#pragma once

#include <functional>
#include <map>
#include <memory>
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
  Duration min_delay = std::chrono::microseconds(10);
  Duration max_delay = std::chrono::microseconds(100);
  Duration redial_delay = std::chrono::milliseconds(50);
};

class SimNetwork final : public net::Network {
 public:
  SimNetwork(ManualClock& clock, uint64_t seed, SimNetworkOptions options = {});
  ~SimNetwork() override;

  Result<std::unique_ptr<net::ServerTransport>> Listen(const std::string& endpoint) override;
  Result<std::unique_ptr<net::ClientTransport>> Dial(const std::string& endpoint) override;

  // Faults from here on.
  void SetOptions(const SimNetworkOptions& options) { options_ = options; }
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
  using Task = std::function<void()>;
  struct Peer {
    std::string endpoint;
    std::function<void(net::Message)> on_message;
    TimePoint last_arrival_to_server, last_arrival_to_client;
  };
  void At(TimePoint when, Task task);
  bool Step(TimePoint until);
  net::PeerId AddPeer(const std::string& endpoint, std::function<void(net::Message)> on_message);
  void Deliver(net::PeerId peer, bool to_server, const net::Message& message);

  ManualClock& clock_;
  Prng prng_;
  SimNetworkOptions options_;
  std::map<std::pair<TimePoint, uint64_t>, Task> events_;  // ties in order of creation
  uint64_t next_event_ = 0;
  uint64_t in_flight_ = 0;
  uint64_t messages_sent_ = 0;
  std::map<std::string, class SimServer*> servers_;
  std::map<class SimClient*, std::string> clients_;
  std::map<net::PeerId, Peer> peers_;
  net::PeerId last_peer_ = 0;
};

}  // namespace weir::testing
