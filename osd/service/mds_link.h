// MdsLink: keeps an OSD registered with the MDS and its configuration current.
//
//   register ─► watch ─► watch ─► …      a watch is a long poll: answered when the map is newer
//      ▲──── unknown_session ────┘       than have_epoch, or after a second
//
// A watch says which epoch this OSD obeys; the one after a new map goes out at once, which is what
// lets the MDS tell an operator that a change holds. A failed call is repeated after a pause, for
// ever; only a refusal of the first registration is final.
//
// Threads: the loop's, where hooks run, too; WaitRegistered waits on any other.
// Errors:  WaitRegistered returns the refusal (kWrongCluster and the like).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"
#include "common/qos/class_times.h"
#include "common/reactor/loop.h"
#include "osd/qos/admission/service_monitor.h"
#include "osd/store/object_store.h"

namespace weir::wire {
class ClusterMap;
class WatchRequest;
}  // namespace weir::wire

namespace weir::osd {

class MdsLink {
 public:
  struct Options {
    OsdIdentity identity;
    std::string endpoint;  // where this OSD listens, for the map
    struct Tier {
      std::string name;
      uint64_t capacity_bytes;
    };
    std::vector<Tier> tiers{};  // none: one disk
    Duration watch_wait = std::chrono::seconds(1);
    Duration retry_after = std::chrono::milliseconds(200);
  };
  struct Hooks {
    // Obey this map; when it returns, it holds.
    std::function<void(const ClusterMap&)> apply;
    // The same map as it came, before `apply`. May be empty.
    std::function<void(const wire::ClusterMap&)> came;
    std::function<StoreStats()> store_stats;
    // What the MDS needs for admission by measurement. May be empty.
    std::function<qos::ServiceReport()> measures;
    // Where the time of the classes goes. May be empty.
    std::function<std::map<ClassId, OsdClassTimes>()> times;
    // Nothing is left of the sessions that were fenced up to this epoch. May be empty.
    std::function<Epoch()> fenced;
    std::function<void(const std::string&)> report;
    // Once: the MDS has taken this OSD in (ok), or has refused it for good. May be empty.
    std::function<void(const Status&)> registered;
  };
  // The client is of this link alone; the clock and the loop must outlive it.
  MdsLink(Clock& clock, Loop& loop, Options options, Hooks hooks,
          std::unique_ptr<net::RpcClient> mds);
  ~MdsLink();  // drops the connection; no hook runs afterwards

  // Sends the first registration.
  void Start();

  [[nodiscard]] bool registered() const;
  // Waits until the MDS has taken this OSD in, or has refused it, or Stop.
  Status WaitRegistered();
  // Ends the link; WaitRegistered returns kCancelled.
  void Stop();

  [[nodiscard]] Epoch epoch() const;

 private:
  enum class Next : uint8_t { kRegister, kWatch };
  using OnReply = void (MdsLink::*)(const Result<net::Reply>&);

  // Calls the MDS; the answer comes on the loop, or never after Stop.
  void Call(uint32_t method, const std::string& body, const net::CallOptions& options,
            OnReply on_reply);
  void Register();
  void Watch();
  void AddTimes(wire::WatchRequest* request);
  void OnRegistered(const Result<net::Reply>& reply);
  void OnWatched(const Result<net::Reply>& reply);
  // Not ok: the map cannot be read, and its epoch is not reported as obeyed.
  Status Apply(const wire::ClusterMap& message);
  void RetryLater(Next next, const Status& why);
  void Refuse(const Status& status);
  [[nodiscard]] bool stopping() const;

  Clock& clock_;
  Loop& loop_;
  const Options options_;
  const Hooks hooks_;
  std::unique_ptr<net::RpcClient> mds_;

  mutable std::mutex mutex_;  // what follows; not held over calls and hooks
  std::condition_variable changed_;
  Epoch epoch_;
  uint64_t tag_epoch_ = 0;
  FreshRows fresh_;
  bool registered_ = false;
  bool stopping_ = false;
  std::optional<Status> refused_;
  std::string last_problem_;  // reported once, not at every retry
  LoopTimer retry_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for tasks of the loop
};

}  // namespace weir::osd
