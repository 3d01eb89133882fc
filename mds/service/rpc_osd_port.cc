#include "mds/service/rpc_osd_port.h"

#include <utility>

#include "common/base/prng.h"
#include "common/wire/osd.pb.h"

namespace weir::mds {
namespace {
constexpr Duration kOrderTimeout = std::chrono::seconds(10);  // then it is sent anew
}  // namespace

void RpcOsdPort::Send(const ClusterMap& map, const ObjectOrder& order,
                      std::function<void(OrderEnd)> done) {
  const auto osd = map.osds.find(order.osd);
  const std::string name = "osd." + std::to_string(order.osd.value);
  if (osd == map.osds.end() || !osd->second.up) {
    done(Status(ErrorCode::kUnreachable, name + " is down"));
    return;
  }
  const auto client = ClientOf(osd->second);
  if (!client.ok()) {
    done(client.status());
    return;
  }
  wire::ObjectRequest request;
  request.set_inode(order.inode.value);
  request.set_index(order.index);
  request.set_offset(order.size);
  request.set_class_id(order.charged_to.value);
  request.set_objects_max(order.objects_max);
  if (!order.tier.empty()) request.set_tier(order.tier.ToString());
  request.set_epoch(map.epoch.value);
  request.set_cluster(map.ClusterHash());
  const uint32_t method =
      order.kind == ObjectOrder::Kind::kTruncate ? wire::OSD_TRUNCATE : wire::OSD_DELETE_INODE;
  net::CallOptions options;
  options.timeout = kOrderTimeout;
  (*client)->Call(method, request.SerializeAsString(), {}, options,
                  [done = std::move(done), name](const Result<net::Reply>& reply) {
                    // An object that is not there has nothing to cut off.
                    const bool done_already = reply.code() == ErrorCode::kNotFound;
                    if (!reply.ok() && !done_already) return done(reply.status().Annotate(name));
                    wire::ObjectReply answer;
                    if (reply.ok() && !answer.ParseFromString(reply->body)) {
                      return done(Status(ErrorCode::kBadMessage, name + " answers nonsense"));
                    }
                    done({Status::Ok(), answer.next_index()});
                  });
}

Result<std::shared_ptr<net::RpcClient>> RpcOsdPort::ClientOf(const OsdEntry& osd) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return Status(ErrorCode::kCancelled, "the MDS is going away");
  Connection& connection = connections_[osd.id];
  if (connection.client != nullptr && connection.endpoint == osd.endpoint) {
    return connection.client;
  }
  if (connection.client != nullptr) retired_.push_back(std::move(connection.client));
  net::RpcClient::Options options;
  options.session = RandomSeed();  // request ids begin anew with each connection
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<net::RpcClient> client,
                        net::RpcClient::Connect(network_, clock_, osd.endpoint, options));
  connection = {osd.endpoint, std::move(client)};
  return connection.client;
}

void RpcOsdPort::Stop() {
  std::map<OsdId, Connection> connections;  // both destroyed without the lock
  std::vector<std::shared_ptr<net::RpcClient>> retired;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  connections.swap(connections_);
  retired.swap(retired_);
}

void RpcOsdPort::Tick() {
  std::vector<std::shared_ptr<net::RpcClient>> retired;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    retired.swap(retired_);
  }
}

}  // namespace weir::mds
