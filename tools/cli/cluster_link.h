// ClusterLink: how a tool reaches the daemons of a cluster.
//
// A cluster is named by its MDS endpoint (tcp://HOST:PORT, ipc://PATH, HOST[:PORT]) or by a
// directory: what `--data` or `--dir` of a daemon was, in which it left a file `endpoint`.
//
// Threads: not thread-safe; calls wait for their answer.
// Errors:  kUnreachable names the endpoint and how to point elsewhere; kInvalid a name that is
//          neither; otherwise what the daemon answered.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace google::protobuf {
class MessageLite;
}
namespace weir::net {
class Network;
class RpcClient;
}  // namespace weir::net
namespace weir::wire {
class ClusterMap;
class OsdInfo;
class OsdStatsReply;
}  // namespace weir::wire

namespace weir::cli {

// The MDS endpoint that a cluster's name stands for.
Result<std::string> ResolveEndpoint(const std::string& cluster);

// Where an OSD of the map answers from another process. One that shares a process with its MDS is
// inproc://osd.N in the map and listens beside the MDS's ipc socket too: ipc://DIR/osd.N.sock.
std::string ReachableEndpoint(const std::string& osd_endpoint, const std::string& mds_endpoint);

class ClusterLink {
 public:
  // For the first answer of a daemon: beyond it there is no contact.
  static constexpr Duration kContactTimeout = std::chrono::milliseconds(2500);
  static constexpr Duration kChangeTimeout = std::chrono::seconds(30);

  static Result<std::unique_ptr<ClusterLink>> Open(const std::string& cluster);
  ~ClusterLink();

  // One request to the MDS, which gives up after `timeout`; the first call of a link after
  // kContactTimeout.
  Status Call(uint32_t method, const google::protobuf::MessageLite& request,
              google::protobuf::MessageLite* reply, Duration timeout = kChangeTimeout);
  Result<wire::ClusterMap> Map();
  // One request to an OSD.
  Status CallOsd(const wire::OsdInfo& osd, uint32_t method,
                 const google::protobuf::MessageLite& request, google::protobuf::MessageLite* reply,
                 Duration timeout);
  // The counters of several OSDs, asked at the same time; answers in the same order. With `flows`
  // also the users and openers of their classes.
  std::vector<Result<wire::OsdStatsReply>> Stats(const std::vector<wire::OsdInfo>& osds, bool reset,
                                                 bool flows = false);

  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

 private:
  explicit ClusterLink(std::string endpoint);
  Result<net::RpcClient*> ClientOf(const std::string& endpoint);

  std::string endpoint_;
  uint64_t session_;
  bool in_contact_ = false;
  std::unique_ptr<net::Network> network_;
  std::map<std::string, std::unique_ptr<net::RpcClient>> clients_;  // by endpoint
};

}  // namespace weir::cli
