#include "client/remote/reactor_networks.h"

#include <utility>

#include "common/base/check.h"

namespace weir::client {

ReactorNetworks::ReactorNetworks(net::Network& network) : networks_{&network} {}

ReactorNetworks::ReactorNetworks(net::Network& network, const std::vector<Reactor*>& reactors)
    : reactors_(reactors) {
  WEIR_CHECK(!reactors.empty() && reactors.size() <= kMost, "a mount has one to four reactors");
  for (Reactor* const reactor : reactors) {
    networks_.push_back(views_.emplace_back(network.On(*reactor)).get());
  }
}

ReactorNetworks::ReactorNetworks(net::Network& network, size_t count, std::function<size_t()> here)
    : networks_(count, &network), here_(std::move(here)) {
  WEIR_CHECK(count > 0 && count <= kMost, "a mount has one to four reactors");
}

size_t ReactorNetworks::Here() const {
  if (here_) return here_();
  for (size_t i = 1; i < reactors_.size(); ++i) {
    if (reactors_[i]->InLoop()) return i;
  }
  return 0;
}

}  // namespace weir::client
