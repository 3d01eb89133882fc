// NamespaceDb: the namespace on a KvStore. Operations are prepared one after the other under one
// lock, see each other's prepared changes, and are made durable in groups: whatever was prepared
// while the last batch was on its way to the disk goes into the next one, and is answered when that
// is durable.
//
// Memory:     preparing does not wait for the disk. An operation that finds something missing from
//             memory changes nothing; it is put aside until that has been loaded, and prepared anew
//             as if it had come then. Others pass it meanwhile: whoever has two under way at once
//             cannot tell in which order they happen.
// Order:      as prepared, and so do batches become durable: a crash leaves a prefix. An answer
// that
//             builds on a change which is not durable yet waits for it, so nobody is ever told what
//             a crash could take back, but for who did it: an ordered session gets early answers,
//             and does not wait for what only it has changed. What was answered early is durable
//             as soon as its session has asked
//             for, or when somebody waits for it.
// Atomicity:  an operation is in one batch, whole or not at all, together with the answer it gave:
//             a request that is repeated, also after a restart, gets that answer.
// Threads:    every call from any thread. Done runs on the thread that commits, at once on the
//             caller's when there is nothing to wait for, or on one that has loaded; never under
//             the lock.
// Errors:     what the operation says; kIo and the like when the store fails: then everything that
//             waited fails, and what the store has is what holds. Where early answers are lost with
//             it, all that is asked afterwards fails, until the NamespaceDb is opened anew.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/base/time.h"
#include "common/kv/kv_store.h"
#include "mds/mds_options.h"
#include "mds/ns/operation.h"
#include "mds/ns/store_loader.h"

namespace weir::mds {

// Who asked what, for answers that are safe to repeat.
struct RequestOrigin {
  uint64_t session = 0;
  uint64_t sub_session = 0;  // whose ids these are (common/net/sub_session.h)
  uint64_t request_id = 0;   // 0: nobody repeats it
  uint64_t acked_below = 0;  // ids whose answers need no memory any more
  uint32_t method = 0;
  std::string mount_class;
  std::string client;
  // Directories whose names, mode or owner it may change: others' leases on them go first.
  std::vector<uint64_t> changes;
  uint64_t resizes = 0;        // file that others' rights to append go before; 0: none
  bool lazy = false;           // nobody waits for it to be durable
  bool quiet = false;          // nor does anybody need it soon: a quiet change of the Overlay
  Duration ordered_within{0};  // its session takes early answers that are durable so soon; 0: none
  bool early = false;          // and this may be one
  bool alone = false;          // no other session can be there
  // It was answered in a former life, then, and made that inode, or 0.
  int64_t replayed_at_ns = 0;
  uint64_t replayed_inode = 0;
  // It cannot be prepared twice: it reads from the disk, under the lock, and waits for no lease, so
  // that it must change nothing that mounts are told of.
  bool unrepeatable = false;
  // Held until the operation is durable, but not while it waits for leases or for OSDs; never let
  // go under the lock.
  std::shared_ptr<void> turn;
};

// What follows a durable operation; called without the lock, on the thread that runs Done.
class CommitListener {
 public:
  virtual ~CommitListener() = default;
  virtual void OnPurge(const PurgeJob& job) = 0;
  // FinishTruncate is to be called when the OSDs have done it.
  virtual void OnTruncate(const TruncateJob& job) = 0;
  virtual void OnTagEpoch(uint64_t tag_epoch) = 0;
  virtual void OnRecall() {}  // somebody must give leases back
  // A request of it is prepared, under the lock: what that does lasts until DropSession, so that
  // one has to come, also of a session that has ended while the request waited.
  virtual void OnPrepare(uint64_t /*session*/) {}
};

class NamespaceDb {
 public:
  using Options = NamespaceOptions;
  // Prepares, and returns the serialised answer.
  using Prepare = std::function<Result<std::string>(Operation&)>;
  using Done = std::function<void(Status, std::string)>;

  // Opens what the store holds, or makes an empty root. All arguments outlive the NamespaceDb.
  static Result<std::unique_ptr<NamespaceDb>> Open(KvStore& store, Clock& clock,
                                                   ClusterView& cluster, CommitListener& listener,
                                                   const Options& options = {});
  ~NamespaceDb();  // commits what is prepared

  void Execute(RequestOrigin origin, Prepare prepare, Done done);

  // `done` when all that has been prepared is durable, with a wire::OrderedAnswer.
  void Commit(Done done);

  // The OSDs have cut the file off, which freed so much; answers whoever waited. `done` of the
  // SETATTR runs when that is durable too: a replay after its answer could destroy what was written
  // since.
  void FinishTruncate(uint64_t inode, uint64_t freed_bytes);
  // The data of a purged inode is gone.
  void FinishPurge(uint64_t inode);

  // The session holds these inodes open from before our restart, or its own: then (`resumes`) how
  // they are open is known.
  void Reclaim(uint64_t session, const std::vector<uint64_t>& inodes, bool resumes);
  // The rest of it, in an operation of the session that has begun anew: what it may have buffered
  // of them is asked for, if it knows leases: after FileLeases::Begin.
  Status CameBack(Operation& op, const std::vector<uint64_t>& inodes);
  // In an operation of the session that opens: it is a keeper, which a restart has to know. One
  // that is given up stays so unless it `knows_loss`.
  void AddKeeper(Operation& op, bool knows_loss);
  // What it was told and is not durable is lost, also to the next restart.
  void GiveUpKeeper(uint64_t session);
  // Those of the life before; `given_up`: those that were, and have not been added again since.
  std::vector<uint64_t> Keepers(bool given_up) const;
  // A keeper that was given up will not ask again.
  void ForgetGivenUp(uint64_t session);
  // Everything it had open is closed; orphans go; what it asked for and waits for leases is dropped
  // without an answer. `told_all`: it has reported all that it wrote.
  void DropSession(uint64_t session, bool told_all);
  // The session, which has begun anew, keeps these of those that it took the last name of. `only`:
  // and no others, as a successor does. Any other may have listed them before it had the answer to
  // a removal that was made meanwhile.
  void Keep(uint64_t session, const std::vector<uint64_t>& inodes, bool only);
  // Orphans that stayed long enough for whoever may have asked for them go.
  void EndLingering();
  // Nobody reclaims any more: orphans that nobody holds go.
  void EndGrace();
  [[nodiscard]] DirLeases& leases() { return leases_; }
  [[nodiscard]] FileLeases& file_leases() { return file_leases_; }
  // Runs what waited for leases that are gone now.
  void RetryParked();
  // Requests are parked, or nobody waits for what is prepared: a tick has to see to that.
  [[nodiscard]] bool AnyWait() const;
  // Whether data of it may be on its way to the OSDs.
  [[nodiscard]] bool MayWrite(uint64_t session) const;
  [[nodiscard]] std::vector<uint64_t> SessionsWithOpenFiles() const;
  // Those who could write before our restart, and have neither come back nor been dropped.
  [[nodiscard]] std::vector<uint64_t> MissingWriters() const;
  // Those of them that somebody has waited for for longer than that.
  [[nodiscard]] std::vector<uint64_t> OverdueWriters(Duration patience) const;
  // Answers of a session that will not ask again.
  void ForgetAnswers(uint64_t session);
  std::vector<uint64_t> SessionsWithAnswers();
  // Whether that request of a session on one of its connections is applied, and its answer kept.
  [[nodiscard]] bool HasAnswer(uint64_t sub_session, uint64_t request_id) const;

  // Durably: the session may hold advisory locks, or none any more.
  void SetLockHolder(uint64_t session, bool holds, std::function<void(const Status&)> done);
  Result<std::vector<uint64_t>> LockHolders();

  // Directories that know more than their parents tell some of it; now and then. That is durable
  // with the batch that is open then, or when somebody asks what lies below a directory.
  void TellUsage();

  void BumpTagEpoch();
  [[nodiscard]] uint64_t DurableTagEpoch() const;
  // Of early answers; asked under locks that come behind this one's.
  [[nodiscard]] uint64_t durable_order() const { return durable_order_; }
  [[nodiscard]] uint64_t life() const { return life_; }
  // What was on its way when the last process ended; for the listener's owner at start.
  Result<std::vector<PurgeJob>> PendingPurges();
  std::vector<TruncateJob> PendingTruncates();

  // What nobody waits for is made durable soon, too.
  void CommitLazy();
  // Somebody waits for the open batch, or its time has come.
  [[nodiscard]] bool commit_wanted() const;
  // One batch: for owners without a commit thread. False: nothing was prepared.
  bool CommitPrepared();
  // For owners without loading threads (NamespaceOptions::on_missing): loads what is missing and
  // prepares again. False: nothing was.
  bool LoadMissing() { return loader_->RunHere(); }
  // Operations that have been put aside since the start, each time.
  [[nodiscard]] uint64_t put_aside() const;
  [[nodiscard]] uint64_t commits() const;
  [[nodiscard]] uint64_t committed_operations() const;

 private:
  struct Request {
    RequestOrigin origin;
    Prepare prepare;
    Done done;
    std::vector<FileLeases::Told> told;  // of what it is about to change
    // What has been loaded for it, and how often some of that was missing again.
    std::set<Overlay::Missing> loaded = {};
    int lost = 0;
  };
  struct Waiting {  // for its batch
    Done done;
    std::string answer;
    Effects effects;
    uint64_t tag_epoch = 0;  // new one, or 0
    std::shared_ptr<void> turn;
    bool lazy = false;           // nobody waits: it joins the next batch, or that of CommitLazy
    bool quiet = false;          // of RequestOrigin
    uint64_t new_writer = 0;     // session that is recorded with it, or 0
    Duration ordered_within{0};  // of RequestOrigin, as is the next
    bool early = false;
    int64_t stamp_ns = 0;
  };
  struct Batch {
    uint64_t number = 0;
    std::vector<Waiting> waiting;      // whoever writes waits, too
    size_t early = 0;                  // of them are answered
    TimePoint due = TimePoint::Max();  // when CommitLazy commits it
    [[nodiscard]] bool empty() const { return waiting.empty(); }
  };
  // A SETATTR or OPEN that waits for the OSDs.
  struct Truncating {
    TruncateJob job;
    Done done;  // null after a restart
    std::string answer;
    RequestOrigin origin;
    Effects opened;  // what the request has open when it is answered
    std::vector<Request> queued;
  };

  NamespaceDb(KvStore& store, Clock& clock, ClusterView& cluster, CommitListener& listener,
              const Options& options);
  Status Recover();
  Status Format();
  Status LoadAnswers();
  Status LoadKeepers();
  Status LoadTruncates();
  Status LoadWriters();
  Status CountUsage();

  // What follows a step under the lock, without it.
  struct Ready {
    std::vector<std::function<void()>> runs;
    bool commit = false;  // the commit thread has something to do
    bool load = false;    // here
  };
  void RunReady(Ready ready);
  void ExecuteLocked(Request request, Ready* ready);
  // `granted`: it is about to happen; else it is refused.
  bool WaitsForFileLeases(Request* request, const Operation& op, bool granted, Ready* ready);
  void Park(Request request);
  void Linger(const Operation& op, const Effects& effects);
  bool AnswerRepeated(Request* request, Ready* ready);
  Status KeepAgain(Operation& op, const AnswerRecord& record);
  [[nodiscard]] bool WasGivenUp(uint64_t session) const;
  void Keep(const RequestOrigin& origin, const std::string& answer, const Effects& effects,
            Txn* txn);
  void TrimAnswers(const RequestOrigin& origin, Txn* txn);
  // `new_writer`: the session, when it is recorded for the first time.
  Status RecordWriter(Operation* op, uint64_t* new_writer);
  Status BumpTagEpochIn(Txn* txn, uint64_t* epoch);
  static uint64_t SeenBy(const Overlay::Seen& seen, const Waiting& waiting);
  void Enqueue(Txn* txn, Waiting waiting, Ready* ready);
  void AnswerEarly(Waiting* waiting, Ready* ready);
  void WantCommit(Ready* ready);
  std::string OrderedTail(uint64_t order, uint64_t durable, int64_t stamp_ns) const;
  void Finish(Waiting waiting, const Status& status);
  static void CountFreed(uint64_t freed_bytes, Truncating* truncating, Txn* txn);
  void EndTruncate(uint64_t inode, const Status& status);
  void RunCommits();
  static Txn::Reads ReadsOf(const Request& request);
  Operation MakeOperation(const RequestOrigin& origin, Txn::Reads reads);
  void PurgeUnused(std::vector<uint64_t> inodes);
  void PutAside(Request request, std::vector<Overlay::Missing> missing, Ready* ready);
  void PrepareAgain(std::vector<StoreLoader::Job> loaded);

  KvStore& store_;
  Clock& clock_;
  Stamps stamps_{clock_};  // of changes
  ClusterView& cluster_;
  CommitListener& listener_;
  const Options options_;
  const uint64_t life_;

  mutable std::mutex mutex_;
  std::condition_variable prepared_;
  Overlay overlay_;
  OpenFiles opens_;
  ClassResolver classes_;
  DirLeases leases_;
  FileLeases file_leases_;
  SizeGrants grants_;
  std::vector<Request> parked_;    // wait for leases to be given back
  std::atomic<bool> full_{false};  // the store, after the last batch
  bool in_grace_ = false;
  bool stopping_ = false;
  bool commit_wanted_ = false;   // of open_
  std::vector<Waiting> behind_;  // have nothing to write, and wait for the commit on its way
  Status broken_;                // early answers are lost
  Batch open_;                   // collects; numbers start at 1
  std::map<uint64_t, std::set<uint64_t>> answers_;  // sub-session -> ids kept
  std::map<uint64_t, bool> keepers_;                // recorded; true: given up
  Writers writers_;
  Lingering lingering_;
  UntoldDirectories untold_;
  std::unordered_map<uint64_t, Truncating> truncating_;
  uint64_t durable_tag_epoch_ = 0;
  uint64_t durable_batch_ = 0;
  uint64_t last_order_ = 0;                 // of early answers
  std::atomic<uint64_t> durable_order_{0};  // up to here they are durable
  uint64_t commits_ = 0;
  uint64_t committed_operations_ = 0;
  std::map<uint64_t, Request> aside_;  // by the number of their load
  uint64_t last_aside_ = 0;
  std::thread committer_;
  std::unique_ptr<StoreLoader> loader_;
};

}  // namespace weir::mds
