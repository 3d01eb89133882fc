// MdsServer: an MdsCore behind the RPC of common/net, on one or more endpoints at once. The library
// side of weir-mds; weirfs runs one in its own process.
//
// Threads: Start and destruction from one thread; everything else inside.
// Errors:  from the store, or from an endpoint that cannot be listened on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/kv/kv_store.h"
#include "common/net/rpc.h"
#include "mds/mds_options.h"

namespace weir::mds {

class MdsCore;

class MdsServer {
 public:
  // Serves when it returns. Store, network and clock outlive the server.
  static Result<std::unique_ptr<MdsServer>> Start(KvStore& store, net::Network& network,
                                                  Clock& clock,
                                                  const std::vector<std::string>& endpoints,
                                                  const MdsOptions& options = {});
  ~MdsServer();  // what was answered is durable; what was not is asked again by its client
  // As bound, in the order of Start.
  [[nodiscard]] std::vector<std::string> endpoints() const;
  // For an owner without background threads, who calls Tick and CommitPrepared.
  [[nodiscard]] MdsCore& core();

 private:
  MdsServer();
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::mds
