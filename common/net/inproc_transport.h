// Servers and clients of one process: a message waits in the other side's mailbox until the end of
// its reactor's turn. Ends that share a reactor hand over without another thread, ends of two with
// one wake-up a burst; nothing is copied. Names may be dialled before anybody listens.
#pragma once

#include <memory>
#include <string>

#include "common/net/transport.h"

namespace weir::net {

// The names of one process. Threads: any. Reactors run until their transports are gone.
class InprocHub {
 public:
  InprocHub();
  ~InprocHub();
  // kBusy when somebody listens on that name already.
  Result<std::unique_ptr<ServerTransport>> Listen(const std::string& endpoint, Reactor& reactor);
  std::unique_ptr<ClientTransport> Dial(const std::string& endpoint, Reactor& reactor);

  struct Names;

 private:
  std::shared_ptr<Names> names_;  // outlives the hub while a transport does
};

}  // namespace weir::net
