// ZeroMQ transports for tcp:// and ipc://: ROUTER on servers, DEALER on clients, each owned by one
// I/O thread. Most code wants MakeZmqNetwork of transport.h.
#pragma once

#include <memory>

#include "common/net/endpoint.h"
#include "common/net/transport.h"

namespace weir::net {

// kBusy: a living process listens there. The socket file of a dead one is replaced.
Result<std::unique_ptr<ServerTransport>> ListenZmq(const Endpoint& endpoint);
// `ahead`: its threads run ahead of turns.
Result<std::unique_ptr<ClientTransport>> DialZmq(const Endpoint& endpoint, bool ahead = false);

}  // namespace weir::net
