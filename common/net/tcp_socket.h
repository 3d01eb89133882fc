// TCP sockets that do not block; whoever asked for one closes it.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/net/endpoint.h"

namespace weir::net {

struct TcpListeners {
  std::vector<int> sockets;
  uint16_t port = 0;
};
// One at each of these addresses of tcp endpoints that this machine has, on one free port that they
// share; the ports of the endpoints do not matter. kNotFound: it has none of them.
Result<TcpListeners> ListenTcp(const std::vector<Endpoint>& addresses);

// Begins to connect to an address. FinishTcp tells how it went: true, connected; false, not yet.
Result<int> DialTcp(const Endpoint& address);
Result<bool> FinishTcp(int socket);

// Small messages leave at once, and a peer that has gone without a word is noticed.
void SetUpTcp(int socket);

}  // namespace weir::net
