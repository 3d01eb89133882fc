// ChainMember: one OSD's part in the chain of one slot: head, follower, or syncing; what it may
// answer when. The protocol and why it is right: common/wire/REPLICATION.md. No daemon uses it yet.
//
// A state machine without clock, thread, I/O or chance: messages, durable batches and the time come
// in, messages, batches and answers go out through the two interfaces it was given. Times are
// CLOCK_BOOTTIME. It survives no restart: a new one, with the next life, begins from the store.
// Threads: one.
#pragma once

#include <functional>
#include <memory>

#include "osd/chain/chain_lease.h"
#include "osd/chain/change_list.h"
#include "osd/chain/credits.h"
#include "osd/chain/item_stream.h"
#include "osd/chain/slot_store.h"
#include "osd/chain/sync_source.h"

namespace weir::osd {

using ClientId = uint64_t;

class ChainHost {
 public:
  virtual ~ChainHost() = default;
  virtual void Send(OsdId to, replication::PeerMessage message) = 0;
  virtual void Answer(ClientId client, replication::Reply reply) = 0;
  // To every MDS that might lead.
  virtual void AskLeaders(replication::LeaderAsk ask) = 0;
};

class ChainMember {
 public:
  struct Options {
    uint32_t slot = 0;
    OsdId osd;
    replication::Life life = 0;
    size_t changes_max = 64;                           // of the list for who comes back
    size_t listing_max = 1000;                         // objects in one listing
    size_t installs_max = 16;                          // under way at a time
    Duration repeat = std::chrono::milliseconds(200);  // of what is unanswered
  };
  // `host`, `store` and `credits` outlive it and call nothing of it while they are called. Whatever
  // the store has pending is pending here.
  ChainMember(const Options& options, ChainHost& host, SlotStore& store, Credits& credits);
  ~ChainMember();

  void HandleRequest(ClientId client, const replication::Request& request, TimePoint now);
  void Handle(const replication::PeerMessage& message, TimePoint now);
  void Handle(const replication::LeaderMessage& message, TimePoint now);
  // Repeats what is unanswered. Call it every `repeat` / 2 or so.
  void Tick(TimePoint now);
  // All batches up to this one are on the medium.
  void BatchDurable(uint64_t batch, TimePoint now);
  // The disk has failed: takes no part any more, and says so in its report.
  void Fail();

  [[nodiscard]] replication::SlotReport Report() const;
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::optional<replication::Chain>& chain() const { return chain_; }
  // By which seal others were sealed out last; the answer to a Seal.
  [[nodiscard]] replication::SealId seal() const { return seal_; }
  // Why it failed, if it was not the disk: the protocol was broken.
  [[nodiscard]] const std::string& diverged() const { return diverged_; }

 private:
  struct Pending {
    ObjectId object;
    uint64_t bytes = 0;
    uint64_t batch = 0;
    bool durable = false;    // here
    bool above = false;      // and on everybody before it, under this chain
    bool forwarded = false;  // holds a credit
    TimePoint told;          // when Durable went down last
  };
  struct Waiter {
    replication::Request request;
    std::set<ClientId> clients;
  };
  struct WaitingRead {
    ClientId client;
    replication::Request request;
  };

  // chain_member.cc
  void Adopt(const replication::Chain& chain, TimePoint now);
  void LeaveChain();
  void EnterChain(bool served, TimePoint now);
  void AskForGrants(TimePoint now);
  void ForgetTombstones();
  [[nodiscard]] bool InPath() const { return position_.has_value() && !failed_; }
  [[nodiscard]] bool IsHead() const { return InPath() && *position_ == 0; }
  [[nodiscard]] bool IsTail() const { return InPath() && *position_ + 1 == chain_->path_length(); }
  [[nodiscard]] bool Serving() const { return InPath() && *position_ < chain_->serving(); }
  [[nodiscard]] bool SuccessorSyncs() const;
  [[nodiscard]] const ObjectRecord* Find(ObjectId object) const;
  void Send(OsdId to, decltype(replication::PeerMessage::body) body);
  void SendUp(decltype(replication::PeerMessage::body) body);
  void SendDown(decltype(replication::PeerMessage::body) body);
  void On(const replication::RenewAsk& ask, const replication::PeerMessage& from, TimePoint now);
  void On(const replication::News& news, uint64_t term, TimePoint now);
  void On(const replication::Seal& seal, TimePoint now);

  // chain_head.cc
  void HandleChange(ClientId client, const replication::Request& request, TimePoint now);
  bool AnswerKnown(ClientId client, const replication::Request& request);
  void Order(const replication::Request& request, TimePoint now);
  void OrderRefusal(const replication::Operation& refused, ErrorCode status, TimePoint now);
  void Stage(replication::Operation operation, TimePoint now);
  void Abort(const replication::Refused& refused, TimePoint now);
  void AnswerWaiter(const replication::OpId& id, ObjectId object);
  void SendAwayClients();
  void HandleRead(ClientId client, const replication::Request& request, TimePoint now);
  bool TryRead(ClientId client, const replication::Request& request, TimePoint now);
  void RetryReads(TimePoint now);
  void AnswerStale(ClientId client, const replication::OpId& id);
  void AnswerWith(ClientId client, const replication::OpId& id, ErrorCode status);

  // chain_commit.cc: from staged to published
  void Take(const replication::Operation& operation);
  void ForwardUnsent(TimePoint now);
  void Proceed(replication::Version version, TimePoint now);
  void TellDurable(replication::Version version, TimePoint now);
  void PublishUpTo(ObjectId object, replication::Version version, TimePoint now);
  void DropFrom(ObjectId object, replication::Version from, TimePoint now);
  void Release(std::map<replication::Version, Pending>::iterator which);
  void Submit(Batch batch);
  [[nodiscard]] replication::Version Resolved() const;
  [[nodiscard]] replication::Version ResolvedFromHereDown() const;
  [[nodiscard]] const replication::Operation& OperationOf(replication::Version version) const;
  void On(const replication::Durable& durable, TimePoint now);
  void On(const replication::Ack& ack, TimePoint now);
  void On(const replication::Refused& refused, TimePoint now);

  // chain_link.cc: the link to the successor, from the predecessor, and coming back
  void SendJoin(TimePoint now);
  void Push(replication::ItemBody body, TimePoint now);
  void PumpSync(TimePoint now);
  void On(const replication::Join& join, OsdId from, TimePoint now);
  [[nodiscard]] replication::Verdict VerdictOn(const replication::ObjectVersion& pending) const;
  void StartSync(const replication::Join& join, TimePoint now);
  void On(const replication::Item& item, TimePoint now);
  void On(const replication::ItemAck& ack, TimePoint now);
  void On(const replication::Listing& listing, TimePoint now);
  void OnItem(const replication::Verdicts& verdicts, TimePoint now);
  void OnItem(const replication::Floors& floors, TimePoint now);
  void OnItem(const replication::Forward& forward, TimePoint now);
  void OnItem(const replication::Install& install, TimePoint now);
  void OnItem(const replication::Drop& drop, TimePoint now);
  void OnItem(const replication::Skipped& skipped, TimePoint now);
  void OnItem(const replication::ListNext& list, TimePoint now);
  void OnItem(const replication::SyncEnd& end, TimePoint now);
  [[nodiscard]] bool MustWaitForRoom(const replication::Item& item) const;
  void Skip(ObjectId object, replication::Version version, TimePoint now);
  void ForgetSkipped(ObjectId object, replication::Version from);
  [[nodiscard]] bool Has(const replication::Operation& operation) const;

  const Options options_;
  ChainHost& host_;
  SlotStore& store_;
  Credits& credits_;
  bool failed_ = false;
  std::string diverged_;

  std::optional<replication::Chain> chain_;
  std::optional<size_t> position_;  // in the path
  std::map<replication::Version, Pending> pending_;
  // Passed by because they, or what they build on, were refused here or by the predecessor: not
  // had, whatever came later.
  std::map<replication::Version, ObjectId> skipped_;
  uint64_t last_batch_ = 0, durable_batch_ = 0;
  ChangeList changes_;

  // Of the present chain.
  ChainLease lease_;
  TimePoint asked_at_;
  replication::SealId seal_;
  std::set<OsdId> sealed_out_;
  uint64_t next_sequence_ = 1;
  std::map<replication::OpId, Waiter> waiters_;
  std::vector<WaitingRead> reads_;
  // To the successor: there once it has joined.
  std::unique_ptr<ItemStream> link_;
  std::set<replication::Version> unsent_;
  std::unique_ptr<SyncSource> sync_;
  bool sync_ended_ = false;
  replication::Version resolved_below_;
  TimePoint listing_asked_;
  // From the predecessor.
  uint64_t items_taken_ = 0;
  TimePoint joined_at_;
  replication::Version last_forwarded_;
  std::map<ObjectId, replication::Refused> refused_;
  std::optional<uint64_t> sync_end_batch_;
};

}  // namespace weir::osd
