#include "common/monitor/stats_client.h"

#include <algorithm>
#include <future>
#include <utility>

#include "common/base/prng.h"
#include "common/net/rpc.h"
#include "common/placement/flow_totals.h"

namespace weir::monitor {
namespace {

net::CallOptions Patience() {
  return {.timeout = StatsClient::kPatience, .idempotent = true};
}

template <typename Message>
Result<Message> Decode(const Result<net::Reply>& reply) {
  if (!reply.ok()) return reply.status();
  Message message;
  if (message.ParseFromString(reply->body)) return message;
  return {ErrorCode::kBadMessage, "the daemon's answer cannot be read"};
}

}  // namespace

StatsClient::StatsClient(net::Network& network, Clock& clock)
    : network_(network), clock_(clock), session_(RandomSeed()) {}

StatsClient::~StatsClient() = default;

Result<net::RpcClient*> StatsClient::ClientOf(const std::string& endpoint, Clients* clients) {
  auto& client = (*clients)[endpoint];
  if (client == nullptr) {
    net::RpcClient::Options options;
    options.session = session_;
    options.control = true;
    WEIR_ASSIGN_OR_RETURN(client, net::RpcClient::Connect(network_, clock_, endpoint, options));
  }
  return client.get();
}

Result<wire::StatusReply> StatsClient::ClusterStatus(const std::string& mds) {
  WEIR_ASSIGN_OR_RETURN(net::RpcClient * client, ClientOf(mds, &mds_));
  return Decode<wire::StatusReply>(client->CallAndWait(wire::MDS_STATUS, {}, {}, Patience()));
}

Result<wire::ClassLoadReply> StatsClient::ClassLoad(const std::string& mds, bool flows) {
  wire::ClassLoadRequest request;
  request.set_flows(flows);
  WEIR_ASSIGN_OR_RETURN(net::RpcClient * client, ClientOf(mds, &mds_));
  WEIR_ASSIGN_OR_RETURN(auto load,
                        Decode<wire::ClassLoadReply>(client->CallAndWait(
                            wire::MDS_CLASS_LOAD, request.SerializeAsString(), {}, Patience())));
  if (flows) WEIR_RETURN_IF_ERROR(CheckFlowsAreTold(load));
  return load;
}

std::vector<Result<wire::OsdStatsReply>> StatsClient::OsdStats(const std::vector<std::string>& osds,
                                                               bool flows) {
  wire::OsdStatsRequest request;
  request.set_flows(flows);
  std::erase_if(osds_, [&](const auto& entry) {
    return std::find(osds.begin(), osds.end(), entry.first) == osds.end();
  });
  std::vector<std::future<Result<net::Reply>>> answers;
  for (const std::string& osd : osds) {
    auto promise = std::make_shared<std::promise<Result<net::Reply>>>();
    answers.push_back(promise->get_future());
    const auto client = ClientOf(osd, &osds_);
    if (!client.ok()) {
      promise->set_value(client.status());
      continue;
    }
    (*client)->Call(wire::OSD_STATS, request.SerializeAsString(), {}, Patience(),
                    [promise](Result<net::Reply> reply) { promise->set_value(std::move(reply)); });
  }
  std::vector<Result<wire::OsdStatsReply>> all;
  all.reserve(answers.size());
  for (auto& answer : answers) all.push_back(Decode<wire::OsdStatsReply>(answer.get()));
  return all;
}

}  // namespace weir::monitor
