#include "common/monitor/monitor.h"

#include <charconv>
#include <map>
#include <mutex>
#include <utility>

#include "common/base/log.h"
#include "common/monitor/cluster_watcher.h"
#include "common/monitor/daemon_metrics.h"
#include "common/monitor/http_server.h"
#include "common/monitor/stats_client.h"
#include "common/monitor/web_page.h"

namespace weir::monitor {
namespace {

// Which daemons of this process answered.
void AddAnswered(const std::string& daemon, bool answered, MetricPage* page) {
  page->Gauge("weir_daemon_answers", "1 when this part of the process answered the scrape.",
              {{"daemon", daemon}}, answered ? 1 : 0);
}

// The page of one scrape after the other.
class Scraper {
 public:
  Scraper(net::Network& network, Clock& clock, MonitorOptions options)
      : options_(std::move(options)), client_(network, clock) {}

  HttpReply Scrape() {
    const std::lock_guard lock(mutex_);
    MetricPage page;
    AddProcessMetrics(options_.program, &page);
    if (!options_.mds.empty()) AddMds(&page);
    if (!options_.osds.empty()) AddOsds(&page);
    for (const Collector& collector : options_.more) collector(&page);
    return {200, MetricPage::kContentType, page.Text()};
  }

 private:
  void AddMds(MetricPage* page) {
    const auto status = client_.ClusterStatus(options_.mds);
    const auto load = client_.ClassLoad(options_.mds);
    AddAnswered("mds", status.ok() && load.ok(), page);
    if (status.ok() && load.ok()) AddMdsMetrics(*status, *load, page);
  }

  void AddOsds(MetricPage* page) {
    bool answered = true;
    for (const auto& stats : client_.OsdStats(options_.osds)) {
      answered = answered && stats.ok();
      if (stats.ok()) AddOsdMetrics(*stats, page);
    }
    AddAnswered("osd", answered, page);
  }

  const MonitorOptions options_;
  std::mutex mutex_;
  StatsClient client_;
};

// `since=17` in a query; 0 when there is none.
uint64_t SinceOf(std::string_view query) {
  constexpr std::string_view kName = "since=";
  const size_t at = query.starts_with(kName) ? 0 : query.find("&since=");
  if (at == std::string_view::npos) return 0;
  query.remove_prefix(query.find('=', at) + 1);
  uint64_t since = 0;
  std::from_chars(query.data(), query.data() + query.size(), since);
  return since;
}

// Its errors name the option.
Status StartServer(std::string_view option, const std::string& address,
                   std::map<std::string, HttpServer::Handler> routes,
                   std::unique_ptr<HttpServer>* server) {
  auto started = HttpServer::Start({.address = address}, std::move(routes));
  if (!started.ok()) return started.status().Annotate(option);
  *server = *std::move(started);
  return Status::Ok();
}

}  // namespace

// Destroyed from the last to the first: first nobody asks any more.
struct Monitor::Parts {
  std::unique_ptr<Scraper> scraper;
  std::unique_ptr<ClusterWatcher> watcher;
  std::unique_ptr<HttpServer> metrics;
  std::unique_ptr<HttpServer> web;
};

Monitor::Monitor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Monitor::~Monitor() = default;

Result<std::unique_ptr<Monitor>> Monitor::Start(net::Network& network, Clock& clock,
                                                const MonitorOptions& options) {
  auto parts = std::make_unique<Parts>();
  if (!options.metrics.empty()) {
    parts->scraper = std::make_unique<Scraper>(network, clock, options);
    WEIR_RETURN_IF_ERROR(StartServer(
        "--metrics", options.metrics,
        {{"/metrics",
          [scraper = parts->scraper.get()](std::string_view) { return scraper->Scrape(); }}},
        &parts->metrics));
    WEIR_LOG_INFO("metrics at http://{}/metrics", parts->metrics->address());
  }
  if (!options.web.empty()) {
    parts->watcher = std::make_unique<ClusterWatcher>(network, clock, options.mds);
    std::map<std::string, HttpServer::Handler> routes;
    routes["/"] = [](std::string_view) {
      return HttpReply{200, "text/html; charset=utf-8", std::string(kWebPage)};
    };
    routes["/api/v1/cluster"] = [watcher = parts->watcher.get()](std::string_view query) {
      return HttpReply{200, "application/json", watcher->Document(SinceOf(query))};
    };
    WEIR_RETURN_IF_ERROR(StartServer("--web", options.web, std::move(routes), &parts->web));
    WEIR_LOG_INFO("web page at http://{}/", parts->web->address());
  }
  return std::unique_ptr<Monitor>(new Monitor(std::move(parts)));
}

std::string Monitor::metrics_address() const {
  return parts_->metrics == nullptr ? "" : parts_->metrics->address();
}

std::string Monitor::web_address() const {
  return parts_->web == nullptr ? "" : parts_->web->address();
}

}  // namespace weir::monitor
