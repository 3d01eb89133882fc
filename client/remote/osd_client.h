// OsdClient: RPC connections to the OSDs of the map, one per OSD; a new one when the map gives
// another endpoint. Puts the payload checksum on writes and checks it on reads.
//
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "client/remote/object_sender.h"
#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"

namespace weir::client {

class OsdClient final : public ObjectSender {
 public:
  OsdClient(net::Network& network, Clock& clock, uint64_t session, Duration timeout);
  ~OsdClient() override;

  void Send(const ObjectOp& op, const Stamp& stamp, ObjectCallback callback) override;
  [[nodiscard]] bool Reachable(OsdId osd) const override;
  void SetMap(const ClusterMap& map);
  // Outstanding requests end with kCancelled before it returns.
  void Stop();

 private:
  using RpcPtr = std::unique_ptr<net::RpcClient>;
  struct Connection {
    std::string endpoint;
    RpcPtr rpc;
  };
  net::RpcClient* FindLocked(OsdId osd) const;

  net::Network& network_;
  Clock& clock_;
  const uint64_t session_;
  const Duration timeout_;
  std::mutex set_map_mutex_;  // one map after the other
  // Shared while a client is used, exclusive while the set changes: nobody loses one under his
  // feet, and none is destroyed on its own I/O thread.
  mutable std::shared_mutex mutex_;
  std::map<OsdId, Connection> connections_;
};

}  // namespace weir::client
