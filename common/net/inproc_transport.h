// Servers and clients of one process: messages go straight into the other side's I/O thread.
// One thread hop per message, none from a lent thread (LendThread; its answers: AnswerHere);
// nothing is copied. Names may be dialled before anybody listens.
#pragma once

#include <memory>
#include <string>

#include "common/net/transport.h"

namespace weir::net {

// The names of one process. Threads: any.
class InprocHub {
 public:
  InprocHub();
  ~InprocHub();
  // kBusy when somebody listens on that name already.
  Result<std::unique_ptr<ServerTransport>> Listen(const std::string& endpoint);
  std::unique_ptr<ClientTransport> Dial(const std::string& endpoint);

  struct Names;

 private:
  std::shared_ptr<Names> names_;  // outlives the hub while a transport does
};

}  // namespace weir::net
