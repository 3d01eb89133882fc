// ChainKeeper: the leader's part in replication: who is in each slot's chain, in which state, and
// until when a member that is taken out may still answer. common/wire/REPLICATION.md says why it is
// right. No daemon uses it yet.
//
// A state machine without clock, thread, I/O or chance. One per MDS; it acts while it leads.
// The chains are in etcd: a proposal is carried out there if the term is that of the leader and the
// slot's chain is the one before, and Decided tells what is in force. Times are CLOCK_BOOTTIME.
// Threads: one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/replication/messages.h"

namespace weir::mds {

// What a leader knows of an OSD, as one chain sees it.
struct MemberHealth {
  bool alive = false;
  bool unknown = false;  // a new leader that has not listened long enough
  replication::Life life = 0;
  bool failed = false;  // of that life
  bool synced = false;  // under the present version of the chain
};

// The next chain; none: it is as it should be, or nothing can be done. Serving members of it serve
// in `now`, or sync and are synced; it has at least one.
std::optional<replication::Chain> PlanChain(const replication::Chain& now,
                                            const std::function<MemberHealth(OsdId)>& health);

class KeeperHost {
 public:
  virtual ~KeeperHost() = default;
  virtual void Send(OsdId to, replication::LeaderMessage message) = 0;
  // May get lost; the keeper repeats it until Decided is called for the slot.
  virtual void Propose(uint64_t term, const replication::Chain& next) = 0;
};

class ChainKeeper {
 public:
  struct Options {
    Duration silence = std::chrono::milliseconds(1500);  // after which a member is not alive
    Duration repeat = std::chrono::milliseconds(200);
    Duration lease_wait = replication::kLeaseWait;
  };
  ChainKeeper(const Options& options, KeeperHost& host) : options_(options), host_(host) {}

  // It has become leader, and read the chains afterwards. Requires: the term is new; who has
  // stepped down may still have a proposal of the old one under way, and answers to its seals.
  void Lead(uint64_t term, std::vector<replication::Chain> chains, TimePoint now);
  void StepDown() { leading_ = false; }
  [[nodiscard]] bool leading() const { return leading_; }
  // It may grant until then.
  void HoldsAuthorityUntil(TimePoint until) { authority_until_ = until; }

  void Handle(const replication::MemberMessage& message, TimePoint now);
  // What etcd has for the slot, in answer to a proposal.
  void Decided(const replication::Chain& chain, TimePoint now);
  // Call it every `repeat` / 2 or so.
  void Tick(TimePoint now);

 private:
  struct Osd {
    replication::Life life = 0;
    bool failed = false;
    TimePoint heard;
    std::map<uint32_t, replication::SlotReport> slots;
  };
  struct Change {
    replication::Chain next;
    replication::SealId seal;
    std::set<OsdId> removed;  // whose leases are waited for
    std::map<OsdId, replication::Life> unsealed;
    TimePoint sealed_at;    // by all
    bool proposed = false;  // there is no way back
    TimePoint sent_at;
  };

  [[nodiscard]] MemberHealth HealthOf(const replication::Chain& chain, OsdId osd,
                                      TimePoint now) const;
  void Review(uint32_t slot, TimePoint now);
  void Begin(const replication::Chain& now_in_force, replication::Chain next, TimePoint now);
  void GoOn(const replication::Chain& in_force, Change* change, TimePoint now);
  void SendSeals(const replication::Chain& in_force, const Change& change);
  void Cancel(const replication::Chain& in_force, const Change& change);
  void Tell(const replication::Chain& chain);
  void On(const replication::Alive& alive, OsdId from, replication::Life life, TimePoint now);
  void On(const replication::Sealed& sealed, OsdId from, replication::Life life, TimePoint now);
  void On(const replication::LeaderAsk& ask, OsdId from, replication::Life life, TimePoint now);

  const Options options_;
  KeeperHost& host_;
  bool leading_ = false;
  uint64_t term_ = 0;
  TimePoint led_since_;
  TimePoint authority_until_;
  uint64_t seals_ = 0;
  std::map<uint32_t, replication::Chain> chains_;
  std::map<uint32_t, Change> changes_;
  std::map<OsdId, Osd> osds_;
};

}  // namespace weir::mds
