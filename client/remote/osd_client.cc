#include "client/remote/osd_client.h"

#include <algorithm>
#include <vector>

#include "common/base/crc32c.h"
#include "common/net/sub_session.h"
#include "common/wire/osd.pb.h"

namespace weir::client {
namespace {

static_assert(static_cast<int>(Lane::kInteractive) == wire::LANE_INTERACTIVE &&
              static_cast<int>(Lane::kBulk) == wire::LANE_BULK &&
              static_cast<int>(Lane::kBackground) == wire::LANE_BACKGROUND);
static_assert(static_cast<int>(FlowKind::kUser) == wire::Flow::USER &&
              static_cast<int>(FlowKind::kCgroup) == wire::Flow::CGROUP &&
              static_cast<int>(FlowKind::kOpener) == wire::Flow::OPENER &&
              static_cast<int>(FlowKind::kNone) == wire::Flow::NONE);

std::string Encode(const ObjectOp& op, const ObjectSender::Stamp& stamp) {
  wire::ObjectRequest request;
  request.set_inode(op.object.inode.value);
  request.set_index(op.object.index);
  request.set_offset(op.offset);
  request.set_length(op.length);
  request.set_class_id(op.class_id.value);
  for (const uint64_t delay : stamp.delays) request.add_delays(delay);
  wire::Flow& flow = *request.mutable_flow();
  flow.set_kind(static_cast<wire::Flow::Kind>(op.flow.kind));
  flow.set_uid(op.flow.uid);
  flow.set_opener(op.flow.opener);
  if (op.flow.cgroup != nullptr) flow.set_cgroup(*op.flow.cgroup);
  request.set_lane(static_cast<wire::Lane>(op.lane()));
  request.set_pool(op.pool.value);
  request.set_slot(stamp.slot);
  request.set_chain_version(stamp.chain_version);
  if (stamp.op.session != 0) {
    wire::OpId* id = request.mutable_op();
    id->set_session(stamp.op.session);
    id->set_number(stamp.op.number);
    id->set_session_floor(stamp.floors.session);
    id->set_object_floor(stamp.floors.object);
  }
  request.set_waited_us(static_cast<uint32_t>(
      std::min<int64_t>(stamp.waited / std::chrono::microseconds(1), UINT32_MAX)));
  request.set_epoch(stamp.epoch);
  request.set_payload_crc(op.payload_crc);
  request.set_cluster(stamp.cluster);
  if (!op.tier.empty()) request.set_tier(op.tier.ToString());
  request.set_want_next(op.want_next);
  request.set_zeros(op.zeros);
  if (op.verb == ObjectOp::Verb::kCopy) {
    request.set_source_inode(op.source.inode.value);
    request.set_source_index(op.source.index);
    request.set_source_offset(op.source_offset);
  }
  return request.SerializeAsString();
}

uint32_t MethodOf(const ObjectOp& op) {
  switch (op.verb) {
    case ObjectOp::Verb::kPunch:
      return wire::OSD_PUNCH;
    case ObjectOp::Verb::kCopy:
      return wire::OSD_COPY;
    case ObjectOp::Verb::kExtents:
      return wire::OSD_EXTENTS;
    case ObjectOp::Verb::kAllocate:
      return wire::OSD_ALLOCATE;
    case ObjectOp::Verb::kGiveBack:
      return wire::OSD_GIVE_BACK;
    case ObjectOp::Verb::kData:
      break;
  }
  return op.write ? wire::OSD_WRITE : wire::OSD_READ;
}

Result<ObjectOutcome> Decode(bool write, OsdId osd, Result<net::Reply> raw) {
  // An object that was never written reads as a hole.
  if (!write && raw.code() == ErrorCode::kNotFound) return ObjectOutcome{};
  if (!raw.ok()) return raw.status();
  wire::ObjectReply reply;
  if (!reply.ParseFromString(raw->body)) {
    return Status(ErrorCode::kBadMessage,
                  "osd." + std::to_string(osd.value) + " sent a reply that cannot be read");
  }
  if (!write && Crc32c(raw->payload.data(), raw->payload.size()) != reply.payload_crc()) {
    return Status(ErrorCode::kCorrupt,
                  "data from osd." + std::to_string(osd.value) + " does not match its checksum");
  }
  ObjectOutcome outcome;
  outcome.payload = std::move(raw->payload);
  outcome.object_size = reply.object_size();
  outcome.window_bytes = reply.window_bytes();
  outcome.server_time = std::chrono::microseconds(reply.server_us());
  outcome.limit_time = std::chrono::microseconds(reply.limit_us());
  outcome.osd = osd;
  outcome.freed_bytes = reply.freed_bytes();
  if (reply.has_grown_bytes()) outcome.grown_bytes = reply.grown_bytes();
  outcome.used_bytes = reply.used_bytes();
  if (reply.has_free_bytes()) outcome.free_bytes = reply.free_bytes();
  for (int i = 0; i + 1 < reply.extents_size(); i += 2) {
    outcome.extents.emplace_back(reply.extents(i), reply.extents(i + 1));
  }
  if (reply.has_next_object()) outcome.next_object = reply.next_object();
  return outcome;
}

// Of a refusal.
std::optional<Chain> NewerChain(const std::string& body) {
  wire::ObjectReply reply;
  if (!reply.ParseFromString(body) || !reply.has_newer_chain()) return std::nullopt;
  auto chain = weir::FromWire(reply.newer_chain());
  return chain.ok() ? std::optional(*std::move(chain)) : std::nullopt;
}

bool AnyBounded(const ClusterMap& map) {
  return std::any_of(map.classes.begin(), map.classes.end(), [](const auto& entry) {
    return entry.second.spec.service.bound > Duration(0);
  });
}

// Of a channel: its own number, and that for its small reads.
constexpr size_t kSmallReads = ReactorNetworks::kMost;
static_assert(2 * ReactorNetworks::kMost <= net::kMostConnections,
              "each reactor has two connections of one session to an OSD");

}  // namespace

OsdClient::OsdClient(const ReactorNetworks& networks, Clock& clock, const Options& options)
    : networks_(networks), clock_(clock), options_(options) {}

OsdClient::~OsdClient() {
  Stop();
}

const OsdClient::Connection* OsdClient::FindLocked(OsdId osd) const {
  auto it = connections_.find(osd);
  return it == connections_.end() ? nullptr : &it->second;
}

net::RpcClient& OsdClient::RpcFor(const Connection& connection, size_t channel,
                                  const ObjectOp& op) {
  const Channel& own = connection.channels[channel];
  const bool ready = channel == 0 || (own.rpc && own.rpc->connected());
  const Channel& chosen = ready ? own : connection.channels[0];
  const bool small = !op.write && op.verb == ObjectOp::Verb::kData && op.length <= kSmallRead;
  const bool apart = small && chosen.small_reads && chosen.small_reads->connected();
  return apart ? *chosen.small_reads : *chosen.rpc;
}

OsdClient::RpcPtr OsdClient::Dial(const std::string& endpoint, size_t channel,
                                  size_t connection) const {
  net::RpcClient::Options options;
  options.session = net::OnConnection(options_.session, static_cast<uint32_t>(connection));
  options.ids_above = options_.ids_above;
  options.resend_interval = options_.resend_interval;
  auto rpc = net::RpcClient::Connect(networks_.at(channel), clock_, endpoint, options);
  return rpc.ok() ? std::move(*rpc) : nullptr;
}

OsdClient::Channel OsdClient::DialChannel(const std::string& endpoint, size_t channel) const {
  Channel dialled{Dial(endpoint, channel, channel), nullptr};
  if (dialled.rpc && networks_.at(channel).LargeDelaySmall(endpoint)) {
    dialled.small_reads = Dial(endpoint, channel, kSmallReads + channel);
  }
  return dialled;
}

void OsdClient::Send(const ObjectOp& op, const Stamp& stamp, Callback callback) {
  const size_t channel = networks_.Here();
  wanted_[channel].store(true, std::memory_order_relaxed);
  std::shared_lock lock(mutex_);
  const Connection* connection = FindLocked(stamp.osd);
  if (connection == nullptr) {
    lock.unlock();
    return callback({Status(ErrorCode::kUnreachable,
                            "osd." + std::to_string(stamp.osd.value) + " is not in the map")});
  }
  net::CallOptions call;
  call.timeout = options_.timeout;
  call.idempotent = !op.write;
  call.error_body = std::make_shared<std::string>();
  RpcFor(*connection, channel, op)
      .Call(MethodOf(op), Encode(op, stamp), op.payload, call,
            [write = op.write, osd = stamp.osd, error_body = call.error_body,
             callback = std::move(callback)](Result<net::Reply> raw) {
              std::optional<Chain> newer;
              if (raw.code() == ErrorCode::kStaleEpoch) newer = NewerChain(*error_body);
              callback({Decode(write, osd, std::move(raw)), std::move(newer)});
            });
}

bool OsdClient::Reachable(OsdId osd) const {
  std::shared_lock lock(mutex_);
  const Connection* connection = FindLocked(osd);
  return connection != nullptr && connection->channels[0].rpc->connected();
}

void OsdClient::SetMap(const ClusterMap& map) {
  std::vector<Channel> closed;  // destroyed after the lock is gone: their callbacks may send again
  std::lock_guard serial(set_map_mutex_);
  any_bounded_ = AnyBounded(map);
  for (const auto& [id, osd] : map.osds) {
    if (osd.endpoint.empty()) continue;
    {
      std::shared_lock lock(mutex_);
      const Connection* current = FindLocked(id);
      if (stopped_) return;
      if (current != nullptr && current->endpoint == osd.endpoint) continue;
    }
    Connection next;
    next.endpoint = osd.endpoint;
    next.channels[0] = DialChannel(osd.endpoint, 0);
    if (!next.channels[0].rpc) continue;  // what cannot be dialled is as good as unreachable
    std::unique_lock lock(mutex_);
    if (!stopped_) std::swap(connections_[id], next);
    closed.push_back(std::move(next.channels[0]));
    for (size_t i = 1; i < next.channels.size(); ++i) {
      if (next.channels[i].rpc) replaced_.push_back(std::move(next.channels[i]));
    }
  }
}

void OsdClient::Tick() {
  for (size_t channel = 1; channel < networks_.size(); ++channel) {
    if (wanted_[channel]) DialWanted(channel);
  }
  std::vector<Channel> closed;
  const std::unique_lock lock(mutex_);
  closed.swap(replaced_);
}

void OsdClient::DialWanted(size_t channel) {
  std::vector<std::pair<OsdId, std::string>> missing;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [id, connection] : connections_) {
      if (!connection.channels[channel].rpc) missing.emplace_back(id, connection.endpoint);
    }
  }
  for (const auto& [id, endpoint] : missing) {
    Channel dialled = DialChannel(endpoint, channel);
    const std::unique_lock lock(mutex_);
    const auto found = connections_.find(id);
    const bool fits = !stopped_ && found != connections_.end() &&
                      found->second.endpoint == endpoint && !found->second.channels[channel].rpc;
    if (fits) std::swap(found->second.channels[channel], dialled);
    if (dialled.rpc) replaced_.push_back(std::move(dialled));
  }
}

void OsdClient::Stop() {
  std::map<OsdId, Connection> connections;
  std::vector<Channel> replaced;
  std::unique_lock lock(mutex_);
  stopped_ = true;
  connections.swap(connections_);
  replaced.swap(replaced_);
  lock.unlock();
}

}  // namespace weir::client
