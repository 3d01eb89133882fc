// ReactorNetworks: the network as each reactor of a mount sees it. What is dialled at one of them
// is sent and answered on that reactor's thread, so that a request of the kernel passes no other.
//
// Threads: any. Lifetime: the network and the reactors outlive it, and it what was dialled.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "common/net/transport.h"
#include "common/reactor/reactor.h"

namespace weir::client {

class ReactorNetworks {
 public:
  static constexpr size_t kMost = 4;

  // One for all threads: `network` itself.
  explicit ReactorNetworks(net::Network& network);
  // Requires: 1 to kMost reactors.
  ReactorNetworks(net::Network& network, const std::vector<Reactor*>& reactors);
  // `count` times `network` itself, of which `here` says the one to take. For simulations, in which
  // there are no threads.
  ReactorNetworks(net::Network& network, size_t count, std::function<size_t()> here);

  [[nodiscard]] size_t size() const { return networks_.size(); }
  [[nodiscard]] net::Network& at(size_t index) const { return *networks_[index]; }
  // That of the calling thread; 0, the first, for a thread that is none of the reactors.
  [[nodiscard]] size_t Here() const;

 private:
  std::vector<Reactor*> reactors_;
  std::vector<std::unique_ptr<net::Network>> views_;
  std::vector<net::Network*> networks_;
  std::function<size_t()> here_;
};

}  // namespace weir::client
