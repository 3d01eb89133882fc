#include "mds/service/rpc_osd_port.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/prng.h"
#include "common/qos/lane.h"

namespace weir::mds {
namespace {
constexpr Duration kOrderTimeout = std::chrono::seconds(10);  // then it is sent anew
constexpr size_t kPurgesAtOnce = 64;

std::string OsdName(OsdId osd) {
  return "osd." + std::to_string(osd.value);
}

void SetOp(const replication::OpId& op, const replication::IdFloors& floors,
           wire::ObjectRequest* request) {
  if (op.session == 0) return;
  request->mutable_op()->set_session(op.session);
  request->mutable_op()->set_number(op.number);
  request->mutable_op()->set_session_floor(floors.session);
  request->mutable_op()->set_object_floor(floors.object);
}

// Whoever has truncated a file waits, nobody does for a purge.
Lane LaneOfOrder(const ObjectOrder& order) {
  return order.charged_to == kSystemPurge ? Lane::kBackground : Lane::kInteractive;
}

// An object that is not there has nothing to cut off.
Status ReadReply(OsdId osd, const Result<net::Reply>& reply, wire::ObjectReply* answer) {
  if (reply.code() == ErrorCode::kNotFound) return Status::Ok();
  if (!reply.ok()) return reply.status().Annotate(OsdName(osd));
  if (answer->ParseFromString(reply->body)) return Status::Ok();
  return {ErrorCode::kBadMessage, OsdName(osd) + " answers nonsense"};
}
}  // namespace

RpcOsdPort::RpcOsdPort(net::Network& network, Clock& clock)
    : network_(network), clock_(clock), ids_(RandomSeed()) {}

void RpcOsdPort::Send(const ClusterMap& map, const ObjectOrder& order,
                      std::function<void(OrderEnd)> done) {
  const auto osd = map.osds.find(order.osd);
  if (osd == map.osds.end() || !osd->second.up) {
    done(Status(ErrorCode::kUnreachable, OsdName(order.osd) + " is down"));
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
  request.set_lane(static_cast<wire::Lane>(LaneOfOrder(order)));
  request.set_pool(order.pool.value);
  if (order.slot.has_value()) request.set_slot(*order.slot);
  request.set_chain_version(order.chain_version);
  SetOp(order.op, order.floors, &request);
  if (order.IsFirstStep()) return AddPurge(osd->second.endpoint, request, {order, std::move(done)});
  const auto client = ClientOf(order.osd, osd->second.endpoint);
  if (!client.ok()) return done(client.status());
  const uint32_t method =
      order.kind == ObjectOrder::Kind::kTruncate ? wire::OSD_TRUNCATE : wire::OSD_DELETE_INODE;
  net::CallOptions options;
  options.timeout = kOrderTimeout;
  (*client)->Call(method, request.SerializeAsString(), {}, options,
                  [done = std::move(done), to = order.osd](const Result<net::Reply>& reply) {
                    wire::ObjectReply answer;
                    const Status status = ReadReply(to, reply, &answer);
                    done({status, answer.next_index(), answer.freed_bytes()});
                  });
}

void RpcOsdPort::AddPurge(const std::string& endpoint, wire::ObjectRequest request, Purge purge) {
  const OsdId osd = purge.order.osd;
  {
    const std::lock_guard lock(mutex_);
    Purges& purges = purges_[osd];
    purges.endpoint = endpoint;
    purges.frame = std::move(request);
    purges.waiting.push_back(std::move(purge));
    if (purges.busy || (purges.waiting.size() < kPurgesAtOnce && !stopped_)) return;
    purges.busy = true;
  }
  SendPurges(osd);
}

// Requires: this thread has made it busy.
void RpcOsdPort::SendPurges(OsdId osd) {
  Batch batch;
  wire::ObjectRequest request;
  std::string endpoint;
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    Purges& purges = purges_[osd];
    const auto from = purges.waiting.begin();
    const size_t count = std::min(purges.waiting.size(), purges.singly ? 1 : kPurgesAtOnce);
    const auto to = from + static_cast<std::ptrdiff_t>(count);
    batch.assign(std::make_move_iterator(from), std::make_move_iterator(to));
    purges.waiting.erase(from, to);
    request = purges.frame;
    endpoint = purges.endpoint;
    const ObjectId first{batch.front().order.inode, 0};
    number = ids_.Begin(first);
    SetOp({ids_.session(), number}, ids_.FloorsOf(first), &request);
  }
  request.set_inode(batch.front().order.inode.value);
  for (size_t i = 1; i < batch.size(); ++i) request.add_more_inodes(batch[i].order.inode.value);
  const auto client = ClientOf(osd, endpoint);
  if (!client.ok()) return PurgesEnded(osd, std::move(batch), number, client.status());
  net::CallOptions options;
  options.timeout = kOrderTimeout;
  (*client)->Call(
      wire::OSD_DELETE_INODE, request.SerializeAsString(), {}, options,
      [this, osd, number, batch = std::move(batch)](const Result<net::Reply>& reply) mutable {
        PurgesEnded(osd, std::move(batch), number, reply);
      });
}

void RpcOsdPort::PurgesEnded(OsdId osd, Batch batch, uint64_t number,
                             const Result<net::Reply>& reply) {
  wire::ObjectReply answer;
  const Status status = ReadReply(osd, reply, &answer);
  if (answer.next_indexes().empty()) answer.add_next_indexes(answer.next_index());
  Batch dropped;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    Purges& purges = purges_[osd];
    ids_.End({batch.front().order.inode, 0}, number);
    if (status.ok() && static_cast<size_t>(answer.next_indexes_size()) < batch.size()) {
      purges.singly = true;  // it has done the first
      const auto rest = batch.begin() + 1;
      purges.waiting.insert(purges.waiting.begin(), std::make_move_iterator(rest),
                            std::make_move_iterator(batch.end()));
      batch.erase(rest, batch.end());
    }
    if (stopped_) dropped.swap(purges.waiting);
    more = purges.waiting.size() >= (purges.singly ? 1 : kPurgesAtOnce);
    purges.busy = more;
  }
  if (more) SendPurges(osd);
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto at = static_cast<int>(i);
    const uint64_t next = at < answer.next_indexes_size() ? answer.next_indexes(at) : 0;
    batch[i].done({status, next});
  }
  Drop(std::move(dropped));
}

Result<std::shared_ptr<net::RpcClient>> RpcOsdPort::ClientOf(OsdId osd,
                                                             const std::string& endpoint) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return Status(ErrorCode::kCancelled, "the MDS is going away");
  Connection& connection = connections_[osd];
  if (connection.client != nullptr && connection.endpoint == endpoint) return connection.client;
  if (connection.client != nullptr) retired_.push_back(std::move(connection.client));
  net::RpcClient::Options options;
  options.session = RandomSeed();  // request ids begin anew with each connection
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<net::RpcClient> client,
                        net::RpcClient::Connect(network_, clock_, endpoint, options));
  connection = {endpoint, std::move(client)};
  return connection.client;
}

void RpcOsdPort::Stop() {
  std::map<OsdId, Connection> connections;  // both destroyed without the lock
  std::vector<std::shared_ptr<net::RpcClient>> retired;
  Batch dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    connections.swap(connections_);
    retired.swap(retired_);
    for (auto& [osd, purges] : purges_) {
      if (purges.busy) continue;  // PurgesEnded drops them
      std::move(purges.waiting.begin(), purges.waiting.end(), std::back_inserter(dropped));
      purges.waiting.clear();
    }
  }
  Drop(std::move(dropped));
}

void RpcOsdPort::Drop(Batch batch) {
  for (Purge& one : batch) one.done(Status(ErrorCode::kCancelled, "the MDS is going away"));
}

void RpcOsdPort::Tick() {
  std::vector<std::shared_ptr<net::RpcClient>> retired;  // destroyed without the lock
  std::vector<OsdId> due;
  {
    const std::lock_guard lock(mutex_);
    retired.swap(retired_);
    for (auto& [osd, purges] : purges_) {
      if (purges.waiting.empty() || std::exchange(purges.busy, true)) continue;
      due.push_back(osd);
    }
  }
  for (const OsdId osd : due) SendPurges(osd);
}

}  // namespace weir::mds
