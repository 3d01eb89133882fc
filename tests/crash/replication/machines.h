// The machines of the simulation: OSDs with a disk that forgets what was not flushed, MDSes that
// want to lead, and etcd.
#pragma once

#include <memory>
#include <vector>

#include "mds/cluster/chain_keeper.h"
#include "osd/chain/chain_member.h"
#include "tests/crash/replication/history.h"
#include "tests/crash/replication/planted.h"

namespace weir::crash::replication {

struct Setup {
  uint32_t osds = 3;
  uint32_t slots = 3;
  uint32_t replicas = 3;
  uint32_t min_replicas = 1;
  uint64_t credit_bytes = 1 << 20;
  size_t changes_max = 64;
  size_t listing_max = 1000;
  size_t installs_max = 16;
  bool splits_only = false;  // the trouble that leases are there for
  Duration think = 60ms;     // of clients between requests, in the mean
  Bug bug = Bug::kNone;
};

class SimOsd;

// One slot on one disk. Batches become durable in order, some time after they were submitted.
class SimSlotStore final : public osd::SlotStore {
 public:
  SimSlotStore(World& world, History& history, SimOsd& osd, Bug bug)
      : world_(world), history_(history), osd_(osd), bug_(bug) {}

  [[nodiscard]] const osd::SlotState& state() const override { return current_; }
  [[nodiscard]] bool HasRoom(const Operation& operation) const override;
  uint64_t Submit(osd::Batch batch) override;

  // The oldest batch is on the medium: its number.
  uint64_t Flush();
  // What was not flushed is lost, but for the oldest `kept` batches.
  void LosePower(size_t kept);
  void Wipe();
  [[nodiscard]] size_t unflushed() const { return unflushed_.size(); }

 private:
  void Note(const osd::Mutation& mutation);
  void Spoil(osd::Batch* batch) const;

  World& world_;
  History& history_;
  SimOsd& osd_;
  const Bug bug_;
  osd::SlotState current_, durable_;
  std::deque<osd::Batch> unflushed_;
  uint64_t submitted_ = 0, flushed_ = 0;
};

class SimOsd final : public osd::ChainHost {
 public:
  SimOsd(World& world, History& history, const Setup& setup, OsdId id, std::string* wrong);

  void Boot();
  void Crash();
  void FailDisk();
  void Wipe();
  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] bool disk_failed() const { return disk_failed_; }
  [[nodiscard]] const SimSlotStore& store(uint32_t slot) const { return *stores_[slot]; }
  [[nodiscard]] const osd::ChainMember& member(uint32_t slot) const { return *members_[slot]; }
  void SetFull(bool full) { full_ = full; }
  void SetSlow(bool slow) { slow_disk_ = slow; }
  [[nodiscard]] bool full() const { return full_; }

  void Send(OsdId to, PeerMessage message) override;
  void Answer(osd::ClientId client, Reply reply) override;
  void AskLeaders(LeaderAsk ask) override;

  // By a store.
  void Submitted(SimSlotStore* store);
  void Wrong(const std::string& what);

 private:
  void Receive(Node from, const Packet& packet);
  void ReceivePeer(PeerMessage message);
  void ReceiveRequest(Node from, const Request& request);
  void TellAlive();
  [[nodiscard]] TimePoint Now();
  [[nodiscard]] std::function<bool()> ThisBoot() const;

  World& world_;
  const Setup setup_;
  const OsdId id_;
  std::string* const wrong_;
  bool up_ = false, disk_failed_ = false, full_ = false, slow_disk_ = false;
  uint64_t boots_ = 0;
  Life life_ = 0;  // durable
  TimePoint last_flush_;
  std::vector<std::unique_ptr<SimSlotStore>> stores_;
  std::unique_ptr<osd::Credits> credits_;
  std::vector<std::unique_ptr<osd::ChainMember>> members_;
};

class SimMds final : public mds::KeeperHost {
 public:
  SimMds(World& world, const Setup& setup, Node node) : world_(world), setup_(setup), node_(node) {}

  void Boot();
  void Crash();
  [[nodiscard]] bool up() const { return keeper_ != nullptr; }
  [[nodiscard]] bool leads() const { return up() && keeper_->leading(); }

  void Send(OsdId to, LeaderMessage message) override;
  void Propose(uint64_t term, const Chain& next) override;

 private:
  void Receive(const Packet& packet);
  void On(const EtcdAnswer& answer);
  [[nodiscard]] TimePoint Now() { return world_.BootTime(node_); }
  // Who has stepped down stands as somebody else.
  [[nodiscard]] uint64_t candidate() const {
    return (uint64_t{node_} << 32) + (boots_ << 16) + resigned_;
  }

  World& world_;
  const Setup setup_;
  const Node node_;
  uint64_t boots_ = 0, resigned_ = 0, term_ = 0;
  std::unique_ptr<mds::ChainKeeper> keeper_;
};

// Never fails; may not be reached.
class SimEtcd {
 public:
  SimEtcd(World& world, const Setup& setup);
  [[nodiscard]] const std::map<uint32_t, Chain>& chains() const { return chains_; }

 private:
  void Receive(Node from, const EtcdAsk& ask);
  bool Campaign(uint64_t candidate);

  World& world_;
  std::map<uint32_t, Chain> chains_;
  uint64_t leader_ = 0, term_ = 0;
  TimePoint lease_until_;
};

}  // namespace weir::crash::replication
