// Messages within a machine, over Unix sockets with abstract names and without ZeroMQ: whoever
// sends writes to the socket himself, and the thread that reads it runs the callback. Over ZeroMQ
// each of both ways has one thread more at either end, and while the processors are busy every
// hop waits for them.
//
// For the few small messages of a prompt lane (Network::ListenPrompt): their threads run ahead of
// turns. Large messages are better off with ZeroMQ, whose threads copy while others go on.
#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/net/transport.h"

namespace weir::net {

// `name`: see abstract_socket.h. kBusy: it is taken.
Result<std::unique_ptr<ServerTransport>> ListenUnix(const std::string& name);
// Connects as soon as somebody listens there who is root or ourselves.
std::unique_ptr<ClientTransport> DialUnix(const std::string& name);

}  // namespace weir::net
