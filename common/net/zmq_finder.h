// ZmqFinder: asks HELLO at a control endpoint, for streams.
#pragma once

#include <memory>

#include "common/net/stream_transport.h"
#include "common/net/zmq_transport.h"

namespace weir::net {

// Dials while it asks only.
std::unique_ptr<StreamFinder> MakeZmqFinder(ControlPlane& plane, Reactor& reactor,
                                            const Endpoint& endpoint);

}  // namespace weir::net
