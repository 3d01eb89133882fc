// RpcOsdPort: object orders over the RPC of common/net, one connection per OSD, dialled when first
// needed and anew when the map gives the OSD another endpoint. Purges of files wait until there are
// enough for a request to their OSD, or for the next Tick.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"
#include "common/replication/op_ids.h"
#include "common/wire/osd.pb.h"
#include "mds/service/osd_port.h"

namespace weir::mds {

class RpcOsdPort final : public OsdPort {
 public:
  RpcOsdPort(net::Network& network, Clock& clock);

  void Send(const ClusterMap& map, const ObjectOrder& order,
            std::function<void(OrderEnd)> done) override;
  void Tick() override;
  void Stop() override;

 private:
  struct Connection {
    std::string endpoint;
    std::shared_ptr<net::RpcClient> client;
  };
  using Done = std::function<void(OrderEnd)>;
  struct Purge {
    ObjectOrder order;
    Done done;
  };
  // To one OSD.
  struct Purges {
    std::vector<Purge> waiting;
    bool busy = false;     // a request is on its way
    bool singly = false;   // the OSD knows no requests for several
    std::string endpoint;  // by the map of the last one
    wire::ObjectRequest frame;
  };
  using Batch = std::vector<Purge>;
  Result<std::shared_ptr<net::RpcClient>> ClientOf(OsdId osd, const std::string& endpoint);
  void AddPurge(const std::string& endpoint, wire::ObjectRequest request, Purge purge);
  void SendPurges(OsdId osd);
  static void Drop(Batch batch);
  void PurgesEnded(OsdId osd, Batch batch, uint64_t number, const Result<net::Reply>& reply);

  net::Network& network_;
  Clock& clock_;
  std::mutex mutex_;
  bool stopped_ = false;
  // Of requests for several first steps, which never go out again as they were.
  replication::OpIds ids_;
  std::map<OsdId, Connection> connections_;
  std::map<OsdId, Purges> purges_;
  // A client must not be destroyed by its own callback, so that Tick does it.
  std::vector<std::shared_ptr<net::RpcClient>> retired_;
};

}  // namespace weir::mds
