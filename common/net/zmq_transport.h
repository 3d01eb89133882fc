// ZeroMQ transports for tcp:// and ipc://, the control plane: ROUTER on servers, DEALER on clients,
// their sockets watched by a reactor. Most code wants MakeNetwork of transport.h.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "common/net/endpoint.h"
#include "common/net/hello.h"
#include "common/net/resolver_thread.h"
#include "common/net/transport.h"
#include "common/net/zmq_socket.h"
#include "common/reactor/reactor.h"

namespace weir::net {

// What the ZeroMQ transports of a process share.
class ControlPlane {
 public:
  // Threads: any.
  std::shared_ptr<ZmqContext> context();
  // Asks DNS, on a thread of its own.
  ResolverThread& resolver();
  // Once about each endpoint, until HELLO was understood there.
  void Complain(const std::string& endpoint, const std::string& what);
  void Understood(const std::string& endpoint);

 private:
  std::mutex mutex_;
  std::set<std::string> complained_;
  std::shared_ptr<ZmqContext> context_;       // made when the first socket is
  std::unique_ptr<ResolverThread> resolver_;  // made when the first name is asked for
};

// kIo: there are not as many descriptors left as a transport may need at its start, with its
// ZeroMQ, which aborts where it gets none.
Status CheckFilesLeft(const Endpoint& endpoint);

// kBusy: a living process listens there. The socket file of a dead one is replaced.
Result<std::unique_ptr<ServerTransport>> ListenZmq(ControlPlane& plane, Reactor& reactor,
                                                   const Endpoint& endpoint);

// Asks HELLO on every connection, and complains in the log where the server does not understand
// our version.
class ZmqClient : public ClientTransport {
 public:
  // What the server answered, and the address at which it did. On the reactor's thread.
  using OnHello = std::function<void(const HelloAnswer&, const std::string& address)>;

  static Result<std::unique_ptr<ZmqClient>> Dial(ControlPlane& plane, Reactor& reactor,
                                                 const Endpoint& endpoint, OnHello on_hello = {});
  // Again, if there is a connection. From the reactor's thread.
  virtual void AskHello() = 0;
};

}  // namespace weir::net
