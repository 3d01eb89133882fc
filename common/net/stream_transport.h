// Streams: transports for requests, on the thread of a reactor. Within a machine over Unix sockets
// with abstract names, between machines over TCP; without ZeroMQ.
//
// A server takes names and ports that are free, new ones each time, and a client learns them by
// asking at the server's control endpoint (StreamFinder; HELLO in common/wire/PROTOCOL.md).
// Threads: as transport.h says; the reactor runs until its transports are gone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/net/endpoint.h"
#include "common/net/transport.h"
#include "common/reactor/reactor.h"

namespace weir::net {

// Peers have ids from kFirstStreamPeer on, so that a server may have others, too.
inline constexpr PeerId kFirstStreamPeer = PeerId{1} << 32;

// `address`: ipc: a Unix socket only; tcp: and at every address of its host that this machine has.
// Its endpoint() is `address`, for messages.
Result<std::unique_ptr<ServerTransport>> ListenStreams(Reactor& reactor, const Endpoint& address);

// Asks a server where its streams are.
class StreamFinder {
 public:
  struct Found {
    StreamAddresses streams;
    std::string host;  // the address at which the server was asked; ipc: empty
  };
  using OnFound = std::function<void(const Found&)>;

  virtual ~StreamFinder() = default;
  // Answers are given to `on_found`, on the reactor's thread and never within Ask: one, several, or
  // none if the question or its answer was lost. Asking again replaces the question. `on_found` may
  // Stop.
  virtual void Ask(OnFound on_found) = 0;
  // No answer any more; what asking took is given back.
  virtual void Stop() = 0;
};

struct StreamOptions {
  Duration ask_again = std::chrono::seconds(1);  // without an answer
};
// Prefers a Unix socket, whose listener must be root or ourselves. Where there is none (another
// machine, another network namespace): TCP. A lost connection is dialled again after 50 ms, 100 ms
// .. 1 s, with the server asked anew, which may be another process by then.
std::unique_ptr<ClientTransport> DialStreams(Reactor& reactor, std::unique_ptr<StreamFinder> finder,
                                             const StreamOptions& options = {});

}  // namespace weir::net
