// ClusterWatcher: looks at a cluster once a second and remembers it for the web page.
//
// Threads: one of its own, which asks the daemons; Document from any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "common/monitor/cluster_history.h"
#include "common/monitor/stats_client.h"

namespace weir::monitor {

class ClusterWatcher {
 public:
  // Network and clock outlive it.
  ClusterWatcher(net::Network& network, Clock& clock, std::string mds);
  ~ClusterWatcher();

  [[nodiscard]] std::string Document(uint64_t since) const;

 private:
  void Run();
  Result<Look> TakeLook();

  Clock& clock_;
  const std::string mds_;
  StatsClient client_;  // of the thread
  mutable std::mutex mutex_;
  std::condition_variable stops_;
  bool stopping_ = false;
  ClusterHistory history_;
  std::thread thread_;
};

}  // namespace weir::monitor
