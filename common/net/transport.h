// Transport: messages in, messages out. Streams for requests (stream_transport.h), ZeroMQ for the
// control plane (zmq_transport.h), a direct hand-over inside one process, a simulated network in
// tests (common/testing/sim_transport.h). Knows nothing of requests or replies; that is rpc.h.
//
// Endpoints: inproc://NAME, ipc://PATH, tcp://HOST:PORT (port 0: any free one,
//            ServerTransport::endpoint() tells); see endpoint.h.
// Threads:   Send, RunAfter from any thread, never blocking. Callbacks and tasks run on the thread
//            of the transport's reactor, which other transports share, one at a time and never
//            within Send; they must not block. A transport is not destroyed from its own
//            callbacks, nor by who holds a lock that a callback of any transport of the reactor
//            may want: its destruction waits for the reactor.
// Delivery:  in order per connection, at most once, maybe not at all; a frame that is no WeirFS
//            frame (envelope.h) is counted and dropped before any callback.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/result.h"
#include "common/base/time.h"

namespace weir {
class Reactor;
}

namespace weir::net {

// A control part (envelope + protobuf header) and an uncopied bulk part, which may be empty.
struct Message {
  std::string header;
  Buffer payload;
};

using PeerId = uint64_t;  // one connection of a client to a server

struct TransportCounters {
  uint64_t received = 0;
  uint64_t sent = 0;
  uint64_t dropped_malformed = 0;
};

// The one timer of a transport; its user multiplexes. Simulated time in tests.
class IoTimer {
 public:
  virtual ~IoTimer() = default;
  // Runs `task` once `delay` has passed (soon, if it is 0 or less); replaces the task set before.
  virtual void RunAfter(Duration delay, std::function<void()> task) = 0;
};

// Where clients find a server's streams.
struct StreamAddresses {
  // `unix:@NAME` or `tcp://HOST:PORT`; a host `*` is the one that the client knows the server by.
  // None: messages come in at ServerTransport::endpoint() only.
  std::vector<std::string> endpoints;
  // The first message on a stream is a HELLO with it. So a port that somebody else has got since
  // leads to nobody.
  uint64_t id = 0;
};

class ServerTransport : public IoTimer {
 public:
  using OnMessage = std::function<void(PeerId, Message)>;
  // No callback runs after destruction.
  virtual Status Start(OnMessage on_message) = 0;
  // To a peer that has gone: dropped.
  virtual void Send(PeerId peer, Message message) = 0;
  [[nodiscard]] virtual const std::string& endpoint() const = 0;
  [[nodiscard]] virtual StreamAddresses streams() const { return {}; }
  [[nodiscard]] virtual TransportCounters Counters() const = 0;
};

class ClientTransport : public IoTimer {
 public:
  using OnMessage = std::function<void(Message)>;
  using OnConnect = std::function<void()>;  // each new connection; what was sent before may be lost
  virtual Status Start(OnMessage on_message, OnConnect on_connect) = 0;
  // While there is no connection: dropped.
  virtual void Send(Message message) = 0;
  // The connection was lost and is not back. Not every loss is noticed: a peer may fall silent.
  [[nodiscard]] virtual bool broken() const { return false; }
  // Drops the connection and dials again (the peer stopped answering).
  virtual void Reset() = 0;
};

// Where transports come from: one per process, shared by all its servers and clients. It outlives
// its transports.
class Network {
 public:
  virtual ~Network() = default;
  // For messages of whichever client.
  virtual Result<std::unique_ptr<ServerTransport>> Listen(const std::string& endpoint) = 0;
  // For requests.
  virtual Result<std::unique_ptr<ClientTransport>> Dial(const std::string& endpoint) = 0;
  // For the control plane: tools, registration, watches, statistics. The server cannot tell and
  // does not care.
  virtual Result<std::unique_ptr<ClientTransport>> DialControl(const std::string& endpoint) {
    return Dial(endpoint);
  }
  // The same network, with transports that live on `reactor`. Networks without reactors ignore it.
  // Outlived by this one.
  virtual std::unique_ptr<Network> On(Reactor& reactor);
  // Small messages wait for large ones that were sent before them, so that a connection of their
  // own is worth it. Not where messages are handed over.
  [[nodiscard]] virtual bool LargeDelaySmall(const std::string& endpoint) const {
    (void)endpoint;
    return false;
  }
};

// Streams and ZeroMQ for tcp:// and ipc://, a direct hand-over for inproc://, whose names live in
// this object. Transports live on `reactor`, which runs until this object is gone; null: on one of
// this object's own. kInvalid for an endpoint that is not well formed, says what is wrong with it;
// kBusy for one that a living process listens on.
std::unique_ptr<Network> MakeNetwork(Reactor* reactor = nullptr);

}  // namespace weir::net
