// ZmqSocket: a ZeroMQ context with one socket, and messages in its frames. Private to
// zmq_transport; one of the two places that include zmq.
//
// A context of its own, because its termination is the one way to know that an endpoint is free
// again, and because a busy connection wants an I/O thread of its own (measured).
// Threads: one at a time; creation, use and destruction may be different threads.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/net/envelope.h"
#include "common/net/transport.h"

namespace weir::net {

class ZmqSocket {
 public:
  explicit ZmqSocket(Direction sends);
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  // A ROUTER if it sends to clients, else a DEALER. `movers`: threads that move its bytes; those of
  // the calling thread's policy.
  Status Open(int movers);
  // kNotFound: the address is none of this machine.
  Status Bind(const std::string& endpoint);
  Status Connect(const std::string& endpoint);
  Status Disconnect(const std::string& endpoint);
  // What Bind made of a port 0.
  [[nodiscard]] std::string BoundEndpoint() const;
  [[nodiscard]] int fd() const;

  // Tells of connections through TakeEvents.
  Status Watch();
  [[nodiscard]] int watch_fd() const;
  struct Events {
    bool connected = false;  // at least once since the last call
    bool lost = false;       // and not established since
    int failed = 0;          // attempts to connect
  };
  Events TakeEvents();

  enum class Received : uint8_t { kNothing, kMessage, kMalformed };
  // Never waits. `peer` is set on a ROUTER only.
  Received Receive(PeerId* peer, Message* message);
  // Whether Receive has something. Sending may have taken the sign of that off the descriptor.
  [[nodiscard]] bool HasInput() const;
  // Never waits; false when it had to drop the message: no such peer, no connection.
  bool Send(PeerId peer, Message message);

 private:
  Direction sends_;
  void* context_ = nullptr;
  void* socket_ = nullptr;
  void* monitor_ = nullptr;
};

}  // namespace weir::net
