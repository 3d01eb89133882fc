// OsdClient: RPC connections to the OSDs of the map, new ones when the map gives another endpoint.
// Puts the payload checksum on writes and checks it on reads.
//
// Where messages queue on their way (a socket, not the same process) an OSD has a second connection
// for small reads, a session of its own. Somebody waits for each of them, and on the first one they
// would wait for megabytes of writes. Reads change nothing, so fences of the mount's session need
// not know of the other, and the order of requests means nothing: what depends on another request
// is sent after its answer.
//
// Threads: any.
#pragma once

#include <atomic>
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
  // `ids_above`: of net::RpcClient::Options.
  OsdClient(net::Network& network, Clock& clock, uint64_t session, Duration timeout,
            uint64_t ids_above = 0);
  ~OsdClient() override;

  void Send(const ObjectOp& op, const Stamp& stamp, ObjectCallback callback) override;
  [[nodiscard]] bool Reachable(OsdId osd) const override;
  void SetMap(const ClusterMap& map);
  // Whether a class has a latency bound.
  [[nodiscard]] bool any_bounded() const { return any_bounded_; }
  // Outstanding requests end with kCancelled before it returns.
  void Stop();

 private:
  using RpcPtr = std::unique_ptr<net::RpcClient>;
  struct Connection {
    std::string endpoint;
    RpcPtr rpc;
    RpcPtr small_reads;  // null: they take the first one
  };
  static constexpr uint64_t kSmallRead = 32 << 10;

  [[nodiscard]] const Connection* FindLocked(OsdId osd) const;
  [[nodiscard]] net::RpcClient& RpcForLocked(const Connection& connection,
                                             const ObjectOp& op) const;
  [[nodiscard]] RpcPtr Dial(const std::string& endpoint, uint64_t session) const;

  net::Network& network_;
  Clock& clock_;
  const uint64_t session_;
  const Duration timeout_;
  const uint64_t ids_above_;
  std::mutex set_map_mutex_;  // one map after the other
  // Shared while a client is used, exclusive while the set changes: nobody loses one under his
  // feet, and none is destroyed on its own I/O thread.
  mutable std::shared_mutex mutex_;
  std::map<OsdId, Connection> connections_;
  std::atomic<bool> any_bounded_{false};
};

}  // namespace weir::client
