// OsdServer: one OSD, usable in-process. Puts the parts together, all of them on one loop:
//
//   RpcServer(s) ─► ObjectService ─► Dispatcher ─► ObjectStore
//                       MdsLink ──► Dispatcher.Apply (classes, boxes, rates of each new map)
// With several disks a TierSet stands where the Dispatcher does here, with one for each.
//
// It serves as soon as Start returns, with the token rate of the disk's identity and class 0 only;
// the map follows once the MDS has answered.
//
// Threads:   Start, WaitRegistered, Stop and the destructor from the owner's thread, which is not
//            the loop's, unless nothing there has one (simulations: BeginStop, idle); the rest as
//            said there.
// Ownership: store, device, network, clock and loop belong to the caller and outlive the server.
//            Closing the store is the caller's, after Stop.
// Errors:    Start: what Listen says of an endpoint (in use, not well formed). WaitRegistered: the
//            refusal of the MDS, kWrongCluster when the disk belongs to another one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/reactor/reactor.h"
#include "osd/io/background_gate.h"
#include "osd/io/dispatcher.h"
#include "osd/io/tier_set.h"
#include "osd/service/mds_link.h"
#include "osd/service/object_service.h"
#include "osd/store/object_store.h"

namespace weir {
class BlockDevice;
struct ClusterMap;
}  // namespace weir
namespace weir::net {
class Network;
class RpcServer;
}  // namespace weir::net

namespace weir::osd {

class OsdServer {
 public:
  struct Tier {
    TierName name;
    ObjectStore* store = nullptr;
    BlockDevice* device = nullptr;
    uint64_t token_rate = 0;
  };
  struct Options {
    std::vector<std::string> listen;       // first: into the map
    std::string mds;                       // endpoint
    uint64_t queue_bytes_max = 256 << 20;  // payloads under way, shared among clients and classes
    // Read by OSD_PROFILE; null: not supported.
    BlockDevice* device = nullptr;
    // Of an OSD with several disks, all of them; the first's store is that given to Start.
    std::vector<Tier> tiers{};
    // Background I/O of the store is a class of the pipeline; false for comparison.
    bool meter_background = true;
    // SetMetering at the start.
    bool metering = true;
    // Hears what moves the scheduler (of the first disk); outlives the server. May be null.
    qos::DecisionRecorder* recorder = nullptr;
    // The pipelines hear of the pressure on this machine's processors, where the kernel counts it.
    bool watch_processors = false;
    std::function<void(bool guarded)> on_guard;  // Dispatcher::OnGuard; may be empty
    // Serves everything; the store calls back there (StoreOptions::loop). Null: a reactor of its
    // own.
    Loop* loop = nullptr;
    // Lines for the log; any thread.
    std::function<void(const std::string&)> report;
    // Once, on the loop: registered (ok) or refused. May be empty.
    std::function<void(const Status&)> on_registered;
  };
  static Result<std::unique_ptr<OsdServer>> Start(ObjectStore& store, const OsdIdentity& identity,
                                                  net::Network& network, Clock& clock,
                                                  Options options);
  ~OsdServer();  // stops
  OsdServer(const OsdServer&) = delete;
  OsdServer& operator=(const OsdServer&) = delete;

  // Waits until the MDS knows this OSD. It tries for as long as it takes, or until Stop.
  Status WaitRegistered() { return link_->WaitRegistered(); }
  // Takes no more requests, serves what is queued as fast as the device can, answers it, lets go of
  // the network. Idempotent.
  void Stop();
  // The first half of Stop, which does not wait; what is under way goes on until idle(). For an
  // owner who must work for that himself.
  void BeginStop();
  [[nodiscard]] bool idle() const;

  // False: operations that come go past the pipeline, to measure what it costs. No contract holds.
  // Any thread.
  void SetMetering(bool on);

  // As bound: a port 0 is resolved. In the order of Options::listen.
  [[nodiscard]] std::vector<std::string> endpoints() const;
  [[nodiscard]] Epoch epoch() const { return link_->epoch(); }
  [[nodiscard]] ObjectService& service() { return *service_; }

 private:
  OsdServer(ObjectStore& store, OsdIdentity identity, net::Network& network, Clock& clock,
            Options options);
  Status Listen();
  Status Connect();
  void Build();
  void Apply(const ClusterMap& map);
  // At the tiers when they are due, and at what the disk gives; asks to be called again.
  void Look();
  void AwaitIdle();
  [[nodiscard]] bool DiskIsSlow() const;
  // A line in the log when the disk becomes slower than promised, or is no more.
  void ReportDisk();
  void AddTiers(ObjectService::Options* service);
  [[nodiscard]] Result<DiskProfile> Profile(const ProfilePattern& pattern);

  const OsdIdentity identity_;
  net::Network& network_;
  ObjectStore& store_;
  Clock& clock_;
  const Options options_;
  std::unique_ptr<Reactor> own_;  // null: the owner's
  Loop* loop_ = nullptr;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::shared_ptr<BackgroundGate> gate_;
  std::unique_ptr<TierSet> tiers_;  // null: one disk
  std::unique_ptr<ObjectService> service_;
  std::vector<std::unique_ptr<net::RpcServer>> servers_;
  std::unique_ptr<MdsLink> link_;
  bool stopping_ = false;
  bool stopped_ = false;
  bool reported_slow_ = false;
  LoopTimer look_ = 0;
};

}  // namespace weir::osd
