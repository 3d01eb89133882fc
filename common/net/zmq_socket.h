// ZmqContext: what the ZeroMQ sockets of a process share. ZmqSocket: one of them, and messages in
// its frames. Private to zmq_transport; the one place that includes zmq.
//
// Threads: of a socket one at a time; creation, use and destruction may be different threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/net/envelope.h"
#include "common/net/transport.h"

namespace weir::net {

class ZmqContext {
 public:
  ZmqContext();
  ~ZmqContext();  // waits until the last socket has gone
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;
  [[nodiscard]] void* get() const { return context_; }

 private:
  void* const context_;
};

class ZmqSocket {
 public:
  ZmqSocket(std::shared_ptr<ZmqContext> context, Direction sends);
  ~ZmqSocket();  // what it listened on is free again
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  // A ROUTER if it sends to clients, else a DEALER.
  Status Open();
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
  // Whether Receive has something. Sending and receiving may have taken the sign of that off the
  // descriptor.
  [[nodiscard]] bool HasInput() const;
  // Never waits; false when it had to drop the message: no such peer, no connection.
  bool Send(PeerId peer, Message message);

 private:
  // Has `events` of the socket told to monitor_.
  Status WatchEvents(int events);
  void EndMonitor();
  void Unbind();

  const std::shared_ptr<ZmqContext> context_;
  const Direction sends_;
  void* socket_ = nullptr;
  void* monitor_ = nullptr;
  std::vector<std::string> bound_;
};

}  // namespace weir::net
