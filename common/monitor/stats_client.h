// StatsClient: asks the daemons of a cluster what they counted, by the requests that osdctl uses.
//
// Threads: not thread-safe; calls wait for their answers, at most kPatience.
// Errors:  kTimedOut or kUnreachable for who does not answer, else what it answered.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"

namespace weir::net {
class Network;
class RpcClient;
struct Reply;
}  // namespace weir::net

namespace weir::monitor {

class StatsClient {
 public:
  static constexpr Duration kPatience = std::chrono::milliseconds(1500);

  StatsClient(net::Network& network, Clock& clock);
  ~StatsClient();

  Result<wire::StatusReply> ClusterStatus(const std::string& mds);
  // With `flows` also the users and openers of classes; kNotSupported from an MDS that tells none.
  Result<wire::ClassLoadReply> ClassLoad(const std::string& mds, bool flows = false);
  // All at the same time; answers in the same order. Connections to OSDs that are not named any
  // more are let go of. With `flows` also the users and openers of classes.
  std::vector<Result<wire::OsdStatsReply>> OsdStats(const std::vector<std::string>& osds,
                                                    bool flows = false);

 private:
  using Clients = std::map<std::string, std::unique_ptr<net::RpcClient>>;
  Result<net::RpcClient*> ClientOf(const std::string& endpoint, Clients* clients);

  net::Network& network_;
  Clock& clock_;
  const uint64_t session_;
  Clients mds_;
  Clients osds_;
};

}  // namespace weir::monitor
