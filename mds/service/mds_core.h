// MdsCore: the metadata server without a network: takes calls, answers them. It joins the
// namespace, the cluster map, sessions, watchers and the work that OSDs must do.
//
// Threads: Handle from any thread; it never waits for the disk (one exception: the first file of a
//          pool). Answers come from the commit thread and from those that load, changes of the map
//          from a background thread, which also ticks. Without background the owner calls Tick, and
//          Handle does it all itself.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/base/tick_pace.h"
#include "common/net/rpc.h"
#include "common/qos/flow_kind.h"
#include "mds/cluster/cluster_keeper.h"
#include "mds/locks/lock_service.h"
#include "mds/mds_options.h"
#include "mds/ns/namespace_db.h"
#include "mds/service/evictions.h"
#include "mds/service/fair_queue.h"
#include "mds/service/object_work.h"
#include "mds/service/replays.h"
#include "mds/service/sessions.h"
#include "mds/service/watchers.h"

namespace weir::mds {

class MdsCore final : public CommitListener {
 public:
  using Call = std::shared_ptr<net::IncomingCall>;
  // Who asks for an operation on names.
  struct Asker {
    uint32_t class_id = 0;  // what it is charged to
    FlowSource flow;        // but for its kind
    uint32_t cost = 1;
    bool report = false;  // ClassOrder::Request
  };
  // All arguments outlive it.
  static Result<std::unique_ptr<MdsCore>> Open(KvStore& store, Clock& clock, OsdPort& osds,
                                               const MdsOptions& options = {});
  ~MdsCore() override;

  void Handle(const Call& call);
  // Liveness, leases, expiry, retries; some ten times a second.
  void Tick();

  [[nodiscard]] ClusterKeeper& keeper() { return *keeper_; }
  [[nodiscard]] NamespaceDb& names() { return *names_; }
  [[nodiscard]] ObjectWork& objects() { return *objects_; }

  void OnPurge(const PurgeJob& job) override { objects_->Purge(job); }
  void OnTruncate(const TruncateJob& job) override { objects_->Truncate(job); }
  void OnTagEpoch(uint64_t tag_epoch) override;
  void OnRecall() override;
  // It lives on until it is silent for a lease again.
  void OnPrepare(uint64_t session) override { sessions_->Admit(session); }

 private:
  MdsCore(KvStore& store, Clock& clock, OsdPort& osds, const MdsOptions& options);
  Status Begin();
  void EvictSilentHolders();
  void EvictSilentKeepers();
  bool FenceMissing();
  void DropSession(uint64_t session);
  RequestOrigin OriginOf(const Call& call);
  // Runs it when it is the turn of its class, or of best-effort if nobody may be charged to that,
  // and of its flow.
  void WhenItsTurn(const Asker& asker, FairQueue::Work work);
  void RenewTerms();

  bool HandleNamespace(const Call& call);  // namespace_requests.cc, as are the next three
  void Replay(const Call& call);
  bool Refused(const Call& call, bool lost);
  void RunNamespace(RequestOrigin origin, const std::string& body, const Call& call);
  void Replayed(const Call& call);
  void Commit(const Call& call);
  bool HandleSession(const Call& call);  // session_requests.cc
  bool HandleAdmin(const Call& call);    // admin_requests.cc
  bool HandleRules(const Call& call);    // rule_requests.cc
  bool HandleLocks(const Call& call);    // lock_requests.cc
  void TestRule(const Call& call);
  void GetClassLoad(const Call& call);
  void GetWhy(const Call& call);
  void OpenSession(const Call& call);
  Status CheckMountClass(const wire::OpenSessionRequest& request) const;
  void CloseSession(const Call& call);
  void Yield(const Call& call);
  void Watch(const Call& call);
  void GiveBack(const Call& call);
  void RegisterOsd(const Call& call);
  void DivideLimits(const Call& call);
  void GetMap(const Call& call);
  void GetStatus(const Call& call);
  wire::ClusterMap WireMap() const;
  wire::ClusterMap MapWithUse() const;

  // Makes a change of the map away from the serving thread and answers when the OSDs obey it.
  using Change = std::function<Result<std::string>(const Asked&)>;
  void ChangeMap(const Call& call, Change change);
  static constexpr Duration kLongestSleep = std::chrono::milliseconds(500);  // a watch of a mount
  static constexpr Duration kLimitPause = std::chrono::milliseconds(1);
  void Used();
  [[nodiscard]] bool Busy() const;
  void Post(std::function<void()> work);
  void RunBackground();

  KvStore& store_;
  Clock& clock_;
  OsdPort& osds_;
  const MdsOptions options_;
  std::unique_ptr<ClusterKeeper> keeper_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<ObjectWork> objects_;
  Replays replays_;
  FairQueue operations_;  // outlives the names_, which hold turns
  std::unique_ptr<NamespaceDb> names_;
  std::unique_ptr<LockService> locks_;
  std::unique_ptr<Watchers> watchers_;
  std::unique_ptr<Evictions> evictions_;
  std::atomic<uint64_t> tag_epoch_{0};
  TimePoint grace_ends_;
  bool in_grace_ = true;  // under the ticking thread
  TimePoint next_answer_check_;

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> work_;
  bool sooner_ = false;  // the queue of operations has something for us
  bool stopping_ = false;
  TickPace pace_{{.lengthy = kLongestSleep}};
  std::thread background_;
};

}  // namespace weir::mds
