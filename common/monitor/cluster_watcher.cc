#include "common/monitor/cluster_watcher.h"

#include <utility>
#include <vector>

namespace weir::monitor {
namespace {
constexpr auto kInterval = std::chrono::seconds(1);
}  // namespace

ClusterWatcher::ClusterWatcher(net::Network& network, Clock& clock, std::string mds)
    : clock_(clock),
      mds_(std::move(mds)),
      client_(network, clock),
      history_(clock.WallNow()),
      thread_([this] { Run(); }) {}

ClusterWatcher::~ClusterWatcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stops_.notify_all();
  thread_.join();
}

std::string ClusterWatcher::Document(uint64_t since) const {
  const std::lock_guard lock(mutex_);
  return history_.Document(since);
}

Result<Look> ClusterWatcher::TakeLook() {
  Look look;
  WEIR_ASSIGN_OR_RETURN(look.status, client_.ClusterStatus(mds_));
  // The rest is worth showing without.
  if (auto names = client_.ClassLoad(mds_, true); names.ok()) {
    look.names = std::move(*names);
  } else {
    look.names_missing = names.status().message();
  }
  std::vector<std::string> endpoints;
  std::vector<uint32_t> ids;
  for (const wire::OsdInfo& osd : look.status.map().osds()) {
    if (!osd.up()) continue;
    endpoints.push_back(osd.endpoint());
    ids.push_back(osd.id());
  }
  auto answers = client_.OsdStats(endpoints, true);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (answers[i].ok()) {
      look.osds[ids[i]] = std::move(*answers[i]);
    } else {
      look.silence[ids[i]] = answers[i].status().message();
    }
  }
  look.at = clock_.Now();
  look.wall = clock_.WallNow();
  return look;
}

void ClusterWatcher::Run() {
  auto next = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    Result<Look> look = TakeLook();
    lock.lock();
    if (look.ok()) {
      history_.Add(std::move(*look));
    } else {
      history_.AddSilence(look.status().message());
    }
    next = std::max(next + kInterval, std::chrono::steady_clock::now());
    stops_.wait_until(lock, next, [this] { return stopping_; });
  }
}

}  // namespace weir::monitor
