// OsdClient: RPC connections to the OSDs of the map, new ones when the map gives another endpoint.
// Puts the payload checksum on writes and checks it on reads.
//
// A request leaves by the connection of the reactor whose thread sends it, and its callback runs
// there; from any other thread by that of the first reactor. Only that one is there from the start:
// who sends on another gets one of his own soon after, and takes the first one's until its server
// has spoken.
//
// Where messages queue on their way (a socket, not the same process) there is a second connection
// beside each for small reads. Somebody waits for each of them, and on the first one they would
// wait for megabytes of writes. All are connections of one session (common/net/sub_session.h), and
// the order of requests on different ones means nothing: what depends on another request is sent
// after its answer.
//
// Threads: any; Tick now and then from one that is no reactor's and that no reactor waits for.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "client/remote/object_sender.h"
#include "client/remote/reactor_networks.h"
#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"

namespace weir::client {

class OsdClient final : public ObjectSender {
 public:
  struct Options {
    uint64_t session = 0;
    Duration timeout = Duration::max();  // of every call
    uint64_t ids_above = 0;              // of net::RpcClient::Options
    Duration resend_interval = net::RpcClient::Options().resend_interval;
  };
  OsdClient(const ReactorNetworks& networks, Clock& clock, const Options& options);
  ~OsdClient() override;

  void Send(const ObjectOp& op, const Stamp& stamp, Callback callback) override;
  [[nodiscard]] bool Reachable(OsdId osd) const override;
  void SetMap(const ClusterMap& map);
  // Whether a class has a latency bound.
  [[nodiscard]] bool any_bounded() const { return any_bounded_; }
  // Makes connections for reactors that have begun to send, and ends those that were replaced.
  void Tick();
  // Outstanding requests end with kCancelled before it returns; nothing is connected any more.
  void Stop();

 private:
  using RpcPtr = std::unique_ptr<net::RpcClient>;
  // Of one reactor.
  struct Channel {
    RpcPtr rpc;          // null: not dialled, or it could not be
    RpcPtr small_reads;  // null: they take the other one
  };
  using Channels = std::array<Channel, ReactorNetworks::kMost>;
  struct Connection {
    std::string endpoint;
    Channels channels;  // the first is always there
  };
  static constexpr uint64_t kSmallRead = 32 << 10;

  [[nodiscard]] const Connection* FindLocked(OsdId osd) const;
  [[nodiscard]] static net::RpcClient& RpcFor(const Connection& connection, size_t channel,
                                              const ObjectOp& op);
  [[nodiscard]] RpcPtr Dial(const std::string& endpoint, size_t channel, size_t connection) const;
  [[nodiscard]] Channel DialChannel(const std::string& endpoint, size_t channel) const;
  void DialWanted(size_t channel);

  const ReactorNetworks& networks_;
  Clock& clock_;
  const Options options_;
  std::mutex set_map_mutex_;  // one map after the other
  // Shared while a client is used, exclusive while the set changes: nobody loses one under his
  // feet. None is destroyed on its own I/O thread, nor on a reactor that would wait for another's.
  mutable std::shared_mutex mutex_;
  std::map<OsdId, Connection> connections_;
  std::vector<Channel> replaced_;  // of other reactors than the one that brings maps
  bool stopped_ = false;
  std::array<std::atomic<bool>, ReactorNetworks::kMost> wanted_{};  // by who sends there
  std::atomic<bool> any_bounded_{false};
};

}  // namespace weir::client
