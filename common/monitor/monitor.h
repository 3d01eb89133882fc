// Monitor: how a daemon lets itself be watched over HTTP: /metrics for Prometheus, and the web page
// with its JSON. Each only where an address was named.
//
// Threads: Start and the destructor from one thread, the destructor before what the collectors and
//          the watcher ask ends. Inside: those of the servers, and one that watches for the page.
// Errors:  Start: an address that cannot be had.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/monitor/metric_page.h"

namespace weir::net {
class Network;
}

namespace weir::monitor {

struct MonitorOptions {
  std::string metrics;  // canonical address (http_server.h); empty: no /metrics
  std::string web;      // the same for the page
  std::string program;  // weir-mds, weir-osd, weirfs
  // Whose metrics are shown, by endpoints of this process. Empty: none of that kind here.
  std::string mds;
  std::vector<std::string> osds;
  std::vector<Collector> more;  // what else the process knows
};

class Monitor {
 public:
  // Network and clock outlive it. The page shows the cluster of `options.mds`.
  static Result<std::unique_ptr<Monitor>> Start(net::Network& network, Clock& clock,
                                                const MonitorOptions& options);
  ~Monitor();

  [[nodiscard]] std::string metrics_address() const;  // as bound; empty: none
  [[nodiscard]] std::string web_address() const;

 private:
  struct Parts;
  explicit Monitor(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::monitor
