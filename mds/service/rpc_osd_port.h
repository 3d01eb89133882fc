// RpcOsdPort: object orders over the RPC of common/net, one connection per OSD, dialled when first
// needed and anew when the map gives the OSD another endpoint.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"
#include "mds/service/osd_port.h"

namespace weir::mds {

class RpcOsdPort final : public OsdPort {
 public:
  RpcOsdPort(net::Network& network, Clock& clock) : network_(network), clock_(clock) {}

  void Send(const ClusterMap& map, const ObjectOrder& order,
            std::function<void(OrderEnd)> done) override;
  void Tick() override;
  void Stop() override;

 private:
  struct Connection {
    std::string endpoint;
    std::shared_ptr<net::RpcClient> client;
  };
  Result<std::shared_ptr<net::RpcClient>> ClientOf(const OsdEntry& osd);

  net::Network& network_;
  Clock& clock_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::map<OsdId, Connection> connections_;
  // A client must not be destroyed by its own callback, so that Tick does it.
  std::vector<std::shared_ptr<net::RpcClient>> retired_;
};

}  // namespace weir::mds
