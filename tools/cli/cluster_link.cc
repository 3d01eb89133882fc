#include "tools/cli/cluster_link.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <random>

#include "common/net/resolve.h"
#include "common/net/rpc.h"
#include "common/wire/map.pb.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"

namespace weir::cli {
namespace {

constexpr std::string_view kElsewhere =
    "name another cluster with --cluster DIR|ENDPOINT or WEIR_CLUSTER";

bool IsSilence(const Status& status) {
  return status.code() == ErrorCode::kTimedOut || status.code() == ErrorCode::kUnreachable;
}

Status NoContact(std::string_view who, const std::string& endpoint) {
  const Result<net::Endpoint> parsed = net::ParseEndpoint(endpoint);
  return {
      ErrorCode::kUnreachable,
      fmt::format("no contact with {} at {}{}: nobody answers; is it running? Start it, or {}", who,
                  endpoint, parsed.ok() ? net::WhereItWasSought(*parsed) : "", kElsewhere)};
}

Status Decode(const Result<net::Reply>& reply, google::protobuf::MessageLite* message) {
  if (!reply.ok()) return reply.status();
  if (message->ParseFromString(reply->body)) return Status::Ok();
  return {ErrorCode::kBadMessage, "the daemon's answer cannot be read; is it of another version?"};
}

net::CallOptions Patience(Duration timeout) {
  return {.timeout = timeout, .idempotent = false};
}

}  // namespace

Result<std::string> ResolveEndpoint(const std::string& cluster) {
  namespace fs = std::filesystem;
  if (cluster.empty()) {
    return {ErrorCode::kInvalid, fmt::format("no cluster named: {}", kElsewhere)};
  }
  if (cluster.find("://") != std::string::npos) return cluster;
  std::error_code ignored;
  if (fs::is_directory(cluster, ignored)) {
    std::string endpoint;
    std::ifstream file(fs::path(cluster) / "endpoint");
    if (std::getline(file, endpoint) && !endpoint.empty()) return endpoint;
    return {ErrorCode::kUnreachable,
            fmt::format("no contact: no daemon has served '{}' yet (it holds no file 'endpoint'); "
                        "start one on it, or {}",
                        cluster, kElsewhere)};
  }
  if (cluster.find('/') != std::string::npos) {
    return {ErrorCode::kUnreachable,
            fmt::format("no contact: there is no directory '{}'; {}", cluster, kElsewhere)};
  }
  auto endpoint = net::ParseEndpoint(cluster);
  if (!endpoint.ok()) return endpoint.status();
  return endpoint->ToString();
}

std::string ReachableEndpoint(const std::string& osd_endpoint, const std::string& mds_endpoint) {
  constexpr std::string_view kInproc = "inproc://";
  const size_t slash = mds_endpoint.rfind('/');
  if (!osd_endpoint.starts_with(kInproc) || !mds_endpoint.starts_with("ipc://")) {
    return osd_endpoint;
  }
  return mds_endpoint.substr(0, slash + 1) + osd_endpoint.substr(kInproc.size()) + ".sock";
}

ClusterLink::ClusterLink(std::string endpoint)
    : endpoint_(std::move(endpoint)), network_(net::MakeNetwork()) {
  std::random_device entropy;
  session_ = (uint64_t{entropy()} << 32) | entropy();
}

ClusterLink::~ClusterLink() = default;

Result<std::unique_ptr<ClusterLink>> ClusterLink::Open(const std::string& cluster) {
  WEIR_ASSIGN_OR_RETURN(std::string endpoint, ResolveEndpoint(cluster));
  WEIR_ASSIGN_OR_RETURN(const net::Endpoint parsed, net::ParseEndpoint(endpoint));
  if (const auto found = net::Resolve(parsed); !found.ok()) {
    return found.status().Annotate("no contact with the MDS at " + endpoint);
  }
  std::unique_ptr<ClusterLink> link(new ClusterLink(std::move(endpoint)));
  auto client = link->ClientOf(link->endpoint_);
  if (!client.ok()) return client.status();
  return link;
}

Result<net::RpcClient*> ClusterLink::ClientOf(const std::string& endpoint) {
  auto& client = clients_[endpoint];
  if (client == nullptr) {
    net::RpcClient::Options options;
    options.session = session_;
    options.control = true;
    auto made = net::RpcClient::Connect(*network_, SystemClock::Get(), endpoint, options);
    if (!made.ok()) return made.status();
    client = std::move(*made);
  }
  return client.get();
}

Status ClusterLink::Call(uint32_t method, const google::protobuf::MessageLite& request,
                         google::protobuf::MessageLite* reply, Duration timeout) {
  if (!in_contact_ && method != wire::MDS_GET_MAP) {
    // A change must not be left hanging in the air: first see whether anybody is there.
    if (auto map = Map(); !map.ok()) return map.status();
  }
  WEIR_ASSIGN_OR_RETURN(net::RpcClient * client, ClientOf(endpoint_));
  const auto answer = client->CallAndWait(method, request.SerializeAsString(), {},
                                          Patience(in_contact_ ? timeout : kContactTimeout));
  if (!answer.ok() && IsSilence(answer.status())) return NoContact("the MDS", endpoint_);
  in_contact_ = true;
  return Decode(answer, reply);
}

Result<wire::ClusterMap> ClusterLink::Map() {
  wire::ClusterMap map;
  WEIR_RETURN_IF_ERROR(Call(wire::MDS_GET_MAP, wire::Empty(), &map));
  return map;
}

Status ClusterLink::CallOsd(const wire::OsdInfo& osd, uint32_t method,
                            const google::protobuf::MessageLite& request,
                            google::protobuf::MessageLite* reply, Duration timeout) {
  const std::string endpoint = ReachableEndpoint(osd.endpoint(), endpoint_);
  WEIR_ASSIGN_OR_RETURN(net::RpcClient * client, ClientOf(endpoint));
  const auto answer =
      client->CallAndWait(method, request.SerializeAsString(), {}, Patience(timeout));
  if (!answer.ok() && IsSilence(answer.status())) {
    return NoContact(fmt::format("osd.{}", osd.id()), endpoint);
  }
  return Decode(answer, reply);
}

std::vector<Result<wire::OsdStatsReply>> ClusterLink::Stats(const std::vector<wire::OsdInfo>& osds,
                                                            bool reset, bool flows) {
  wire::OsdStatsRequest request;
  request.set_reset(reset);
  request.set_flows(flows);
  std::vector<std::future<Result<net::Reply>>> answers;
  for (const wire::OsdInfo& osd : osds) {
    auto promise = std::make_shared<std::promise<Result<net::Reply>>>();
    answers.push_back(promise->get_future());
    auto client = ClientOf(ReachableEndpoint(osd.endpoint(), endpoint_));
    if (!client.ok()) {
      promise->set_value(client.status());
      continue;
    }
    (*client)->Call(wire::OSD_STATS, request.SerializeAsString(), {}, Patience(kContactTimeout),
                    [promise](Result<net::Reply> reply) { promise->set_value(std::move(reply)); });
  }
  std::vector<Result<wire::OsdStatsReply>> stats;
  for (size_t i = 0; i < osds.size(); ++i) {
    const Result<net::Reply> answer = answers[i].get();
    wire::OsdStatsReply reply;
    Status status = Decode(answer, &reply);
    if (IsSilence(status)) {
      status = NoContact(fmt::format("osd.{}", osds[i].id()),
                         ReachableEndpoint(osds[i].endpoint(), endpoint_));
    }
    if (status.ok()) {
      stats.emplace_back(std::move(reply));
    } else {
      stats.emplace_back(std::move(status));
    }
  }
  return stats;
}

}  // namespace weir::cli
