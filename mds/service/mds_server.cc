#include "mds/service/mds_server.h"

#include <utility>

#include "common/reactor/post_here.h"
#include "mds/service/mds_core.h"
#include "mds/service/rpc_osd_port.h"

namespace weir::mds {

// Destroyed from the last to the first: no call comes in any more, then the core ends.
struct MdsServer::Parts {
  Parts(net::Network& network, Clock& clock) : osds(network, clock) {}
  RpcOsdPort osds;
  std::unique_ptr<MdsCore> core;
  std::vector<std::unique_ptr<net::RpcServer>> servers;
};

MdsServer::MdsServer() = default;
MdsServer::~MdsServer() = default;

Result<std::unique_ptr<MdsServer>> MdsServer::Start(KvStore& store, net::Network& network,
                                                    Clock& clock,
                                                    const std::vector<std::string>& endpoints,
                                                    const MdsOptions& options) {
  std::unique_ptr<MdsServer> server(new MdsServer);
  server->parts_ = std::make_unique<Parts>(network, clock);
  Parts& parts = *server->parts_;
  MdsOptions serving = options;
  if (!serving.post_here) serving.post_here = PostHere;
  WEIR_ASSIGN_OR_RETURN(parts.core, MdsCore::Open(store, clock, parts.osds, serving));
  if (options.on_open) WEIR_RETURN_IF_ERROR(options.on_open());
  for (const std::string& endpoint : endpoints) {
    WEIR_ASSIGN_OR_RETURN(
        std::unique_ptr<net::RpcServer> rpc,
        net::RpcServer::Start(
            network, clock, endpoint,
            [core = parts.core.get()](const MdsCore::Call& call) { core->Handle(call); }, {}));
    parts.servers.push_back(std::move(rpc));
  }
  return server;
}

MdsCore& MdsServer::core() {
  return *parts_->core;
}

std::vector<std::string> MdsServer::endpoints() const {
  std::vector<std::string> bound;
  for (const auto& server : parts_->servers) bound.push_back(server->endpoint());
  return bound;
}

}  // namespace weir::mds
