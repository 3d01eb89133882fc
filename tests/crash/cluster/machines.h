// The servers of the simulated cluster: each a machine with a disk, on which a real daemon's parts
// live, die and live again.
// Threads: one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/testing/cold_kv_store.h"
#include "common/testing/manual_loop.h"
#include "mds/service/mds_server.h"
#include "osd/service/osd_server.h"
#include "tests/crash/cluster/planted.h"
#include "tests/crash/cluster/sim_disk.h"
#include "tests/crash/cluster/sim_store.h"

namespace weir::crash {

inline constexpr const char* kMdsEndpoint = "inproc://mds";
inline constexpr const char* kClusterUuid = "00000000-0000-4000-8000-000000000001";
// Shorter than the product's, so that a schedule sees the end of it.
inline constexpr Duration kLease = std::chrono::seconds(6);
// In the product, too, it is a third of the lease: what is lost once costs nobody his session.
inline constexpr Duration kResendInterval = std::chrono::seconds(2);

// What all machines share.
struct World {
  testing::ManualClock& clock;
  testing::SimNetwork& network;
  Prng& prng;
  Bug bug = Bug::kNone;

  void After(Duration delay, std::function<void()> task) {
    network.At(clock.Now() + delay, std::move(task));
  }
  Duration Between(uint64_t low_us, uint64_t high_us) {
    return std::chrono::microseconds(prng.Uniform(low_us, high_us));
  }
};

class SimMds {
 public:
  explicit SimMds(World& world);
  ~SimMds() { Crash(); }

  Status Boot();
  // The machine loses its power now, or in the midst of one of its next commits.
  void Crash();
  void CrashSoon();
  // Of its next commit the disk keeps what that leaves, or all, or nothing. Null: all or nothing.
  void CrashInNextCommit(SimKv::Bug tearing);
  void Calm();  // no crash that was to come soon
  std::function<void()> on_death, on_boot;
  // It gives up a session; told at once, or when it is back if it died just then.
  std::function<void(uint64_t session, uint64_t epoch)> on_fence;
  [[nodiscard]] bool up() const { return server_ != nullptr; }
  [[nodiscard]] mds::MdsCore& core();
  // What a checker sees of the disk.
  [[nodiscard]] KvStore& disk();

 private:
  void TickLater();
  void CommitLater();
  void LoadLater();
  void FailAt(uint64_t nth);
  void TellFences();

  World& world_;
  std::unique_ptr<net::Network> node_;
  SimTable table_;
  std::map<uint64_t, Epoch> fences_;  // told
  std::unique_ptr<SimKv> kv_;
  std::unique_ptr<testing::ColdKvStore> cold_;  // above kv_
  std::unique_ptr<mds::MdsServer> server_;
  std::shared_ptr<int> life_;  // events of an earlier one do nothing
  uint64_t lives_ = 0;
  bool committing_ = false;
  bool loading_ = false;
};

class SimOsd {
 public:
  SimOsd(World& world, uint32_t id);
  ~SimOsd() { Crash(); }

  Status Boot();
  void Crash();
  void CrashSoon();  // in the midst of one of its next writes or flushes
  void Calm();
  // A disk that is slow for a while.
  void Slow(Duration most);
  [[nodiscard]] bool up() const { return server_ != nullptr; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] osd::ObjectStore& store() { return store_->objects(); }
  [[nodiscard]] const std::string& uuid() const { return identity_.osd_uuid; }

 private:
  void WorkLater();
  void Work();
  void RunBy(TimePoint when);
  void PowerLost();

  World& world_;
  const std::string name_;
  osd::OsdIdentity identity_;
  std::unique_ptr<net::Network> node_;
  SimTable table_;
  FaultyDevice medium_;
  std::unique_ptr<SimDevice> device_;
  std::unique_ptr<testing::ManualLoop> loop_;
  std::unique_ptr<SimStore> store_;
  std::unique_ptr<osd::OsdServer> server_;
  std::shared_ptr<int> life_;
  bool working_ = false, dying_ = false;
  TimePoint run_at_ = TimePoint::Max();  // of loop_
};

}  // namespace weir::crash
