#include "mds/ns/namespace_db.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/prng.h"

namespace weir::mds {
namespace {

// What was loaded for an operation and is missing again so often is read under the lock: memory is
// too small for it just now, and it must come to an end.
constexpr int kLostMost = 3;

// Early answers that are committed before their time: whoever waits for the medium
// then waits some milliseconds for them at most.
constexpr size_t kEarlyCommitted = 256;
// CommitLazy is called so often.
constexpr Duration kCommitTick = std::chrono::milliseconds(100);
// So long a batch waits that brings quiet changes alone: they are done again if they get lost.
constexpr Duration kQuietMost = std::chrono::seconds(5);
// As many as are kept in memory while a commit is on its way; what comes then waits for it.
constexpr size_t kEarlyMost = 4096;

}  // namespace

NamespaceDb::NamespaceDb(KvStore& store, Clock& clock, ClusterView& cluster,
                         CommitListener& listener, const Options& options)
    : store_(store),
      clock_(clock),
      cluster_(cluster),
      listener_(listener),
      options_(options),
      life_(options.life != 0 ? options.life : RandomSeed()),
      overlay_(store, options.cached_keys),
      leases_(clock),
      file_leases_(clock, options.file_leases),
      lingering_(clock) {
  open_.number = 1;
  loader_ = std::make_unique<StoreLoader>(
      store, options.on_missing ? 0 : options.loader_threads,
      [this](std::vector<StoreLoader::Job> loaded) { PrepareAgain(std::move(loaded)); });
}

NamespaceDb::~NamespaceDb() {
  loader_->Stop();  // what is aside has changed nothing
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  prepared_.notify_all();
  if (committer_.joinable()) committer_.join();
}

void NamespaceDb::Execute(RequestOrigin origin, Prepare prepare, Done done) {
  const std::shared_ptr<void> turn = origin.turn;  // not let go under the lock
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    ExecuteLocked({std::move(origin), std::move(prepare), std::move(done), {}}, &ready);
  }
  RunReady(std::move(ready));
}

// Without the lock, which whoever commits takes first.
void NamespaceDb::RunReady(Ready ready) {
  if (ready.commit) prepared_.notify_one();
  for (const auto& run : ready.runs) run();
  if (ready.load) loader_->RunHere();
}

// Nothing is decided from what was missing: whatever it did is taken back, but for what holds all
// the same when it is prepared again.
void NamespaceDb::PutAside(Request request, std::vector<Overlay::Missing> missing, Ready* ready) {
  StoreLoader::Job job{++last_aside_, {}};
  bool lost = false;
  for (Overlay::Missing& what : missing) {
    lost = !request.loaded.insert(what).second || lost;
    const uint64_t load = what.is_key() ? overlay_.BeginLoad(what.begin) : 0;
    job.items.push_back({std::move(what), load});
  }
  if (lost) ++request.lost;
  aside_.emplace(job.id, std::move(request));
  loader_->Submit(std::move(job));
  ready->load = options_.loader_threads == 0 && !options_.on_missing;
  if (options_.on_missing) options_.on_missing();
}

void NamespaceDb::PrepareAgain(std::vector<StoreLoader::Job> loaded) {
  std::vector<std::shared_ptr<void>> turns;  // not let go under the lock
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    for (StoreLoader::Job& job : loaded) {
      auto request = aside_.extract(job.id);
      turns.push_back(request.mapped().origin.turn);
      Status failed;
      for (StoreLoader::Item& item : job.items) {
        if (!item.what.is_key()) continue;
        if (item.value.ok()) {
          overlay_.EndLoad(item.what.begin, item.load, *std::move(item.value));
        } else {
          overlay_.FailLoad(item.what.begin, item.load);
          failed = item.value.status();
        }
      }
      if (failed.ok()) {
        ExecuteLocked(std::move(request.mapped()), &ready);
      } else {
        ready.runs.push_back(
            [done = std::move(request.mapped().done), failed] { done(failed, {}); });
      }
    }
  }
  RunReady(std::move(ready));
}

Txn::Reads NamespaceDb::ReadsOf(const Request& request) {
  const bool waits = request.origin.unrepeatable || request.lost == kLostMost;
  return waits ? Txn::Reads::kDisk : Txn::Reads::kMemory;
}

Operation NamespaceDb::MakeOperation(const RequestOrigin& origin, Txn::Reads reads) {
  const bool awaits_holders =
      origin.method != wire::MDS_WROTE && in_grace_ && file_leases_.AwaitsUnknown();
  if (full_) full_ = !store_.HasRoom();
  return Operation(
      overlay_, reads,
      {cluster_, opens_, classes_, leases_, file_leases_, grants_, writers_, untold_, stamps_,
       lingering_, origin.session, origin.mount_class, origin.client,
       origin.replayed_at_ns != 0 ? stamps_.Saw(origin.replayed_at_ns) : stamps_.Next(),
       origin.replayed_at_ns != 0, origin.replayed_inode, in_grace_, awaits_holders, full_});
}

void NamespaceDb::ExecuteLocked(Request request, Ready* ready) {
  if (!broken_.ok()) {
    ready->runs.push_back([done = std::move(request.done), status = broken_] { done(status, {}); });
    return;
  }
  if (request.origin.sub_session != 0) listener_.OnPrepare(request.origin.session);
  if (AnswerRepeated(&request, ready)) return;
  // What is done again was done when no lease was in its way, and nobody has been told anything
  // since.
  const bool replayed = request.origin.replayed_at_ns != 0;
  if (replayed && WasGivenUp(request.origin.session)) {
    ready->runs.push_back([done = std::move(request.done)] {
      done(Status(ErrorCode::kStale, "others have gone on since the restart"), {});
    });
    return;
  }
  if (!replayed && (leases_.InTheWay(request.origin.session, request.origin.changes) ||
                    leases_.AppendInTheWay(request.origin.session, request.origin.resizes))) {
    // Whoever is silent is waited for once.
    const FileLeases::Wish wish{.changed_directories = request.origin.changes};
    if (request.origin.method != wire::MDS_APPEND) {
      file_leases_.Ask(request.origin.session, wish, &request.told);
    }
    for (const uint64_t directory : request.origin.changes) lingering_.LeaseTaken(directory);
    ready->runs.push_back([this] { listener_.OnRecall(); });
    return Park(std::move(request));
  }
  Operation op = MakeOperation(request.origin, ReadsOf(request));
  const bool recorded = leases_.recorded();
  const auto take_back = [&] {
    op.TakeBack();
    leases_.set_recorded(recorded);
    if (op.effects.tags_changed || op.effects.tree_moved) classes_.Forget();
  };
  const auto put_aside = [&] {
    take_back();
    PutAside(std::move(request), std::move(op.txn.missing()), ready);
  };
  Result<std::string> answer = request.prepare(op);
  if (!op.txn.missing().empty()) return put_aside();
  if (op.waits_for_truncate.has_value()) {
    const auto truncating = truncating_.find(*op.waits_for_truncate);
    if (truncating != truncating_.end()) {
      take_back();
      request.origin.turn.reset();
      truncating->second.queued.push_back(std::move(request));
      return;
    }
  }
  if (!request.origin.unrepeatable && !replayed &&
      WaitsForFileLeases(&request, op, answer.ok(), ready)) {
    take_back();
    return Park(std::move(request));
  }
  uint64_t tag_epoch = 0;
  uint64_t new_writer = 0;
  Status status = answer.status();
  if (status.ok()) status = op.SettleUsage();
  const bool changes = !op.txn.writes().empty();
  if (status.ok()) status = RecordWriter(&op, &new_writer);
  if (status.ok() && op.effects.tags_changed) status = BumpTagEpochIn(&op.txn, &tag_epoch);
  if (!op.txn.missing().empty()) {
    if (new_writer != 0) writers_.Remove(new_writer);
    return put_aside();
  }
  const std::shared_ptr<void> turn = std::exchange(request.origin.turn, nullptr);
  const bool leases_recorded = recorded != leases_.recorded();
  Waiting waiting{std::move(request.done),
                  {},
                  std::move(op.effects),
                  tag_epoch,
                  turn,
                  request.origin.lazy,
                  request.origin.quiet,
                  new_writer,
                  request.origin.ordered_within,
                  request.origin.early && !leases_recorded,
                  op.now()};
  if (waiting.effects.tags_changed || waiting.effects.tree_moved) classes_.Forget();
  if (status.ok()) {
    for (const uint64_t inode : waiting.effects.gone) {
      file_leases_.Gone(inode);
      writers_.sole().Gone(inode);
    }
    // The session may have buffered data of a file that it makes again (CameBack: of others).
    const uint64_t opened = waiting.effects.opened_inode;
    if (replayed && opened != 0 && waiting.effects.may_write) {
      file_leases_.Restore(request.origin.session, opened);
    }
  }
  if (!status.ok()) {
    // Nothing is written, but what it saw may not be durable yet.
    op.txn.writes().clear();
    if (status.code() == ErrorCode::kQuota) op.txn.SeeAllContents();
    leases_.set_recorded(recorded);
    writers_.Remove(waiting.new_writer);
    Done done = [original = std::move(waiting.done), status](const Status& committed, std::string) {
      original(committed.ok() ? status : committed, {});
    };
    Waiting refused;
    refused.done = std::move(done);
    refused.effects.shows_counts = status.code() == ErrorCode::kQuota;
    refused.turn = turn;
    refused.ordered_within = request.origin.ordered_within;
    Enqueue(&op.txn, std::move(refused), ready);
    return;
  }
  Linger(op, waiting.effects);
  waiting.answer = std::move(*answer);
  if (waiting.effects.truncate.has_value()) {
    // The answer is for FinishTruncate to give; the batch only starts the OSDs' work.
    Truncating& truncating = truncating_[waiting.effects.truncate->inode];
    truncating = {*waiting.effects.truncate,
                  std::move(waiting.done),
                  std::move(waiting.answer),
                  request.origin,
                  {},
                  {}};
    file_leases_.BeginCut(waiting.effects.truncate->inode);
    truncating.opened.opened_inode = waiting.effects.opened_inode;
    truncating.opened.open_flags = waiting.effects.open_flags;
    waiting.done = nullptr;
  } else if (changes && waiting.done != nullptr) {
    Keep(request.origin, waiting.answer, waiting.effects, &op.txn);
  }
  Enqueue(&op.txn, std::move(waiting), ready);
}

void NamespaceDb::Linger(const Operation& op, const Effects& effects) {
  if (effects.kept != 0) lingering_.Keep(op.context.session, effects.kept);
  if (effects.stays != 0) lingering_.Stay(effects.stays);
}

// It is prepared again when they are gone.
void NamespaceDb::Park(Request request) {
  request.origin.turn.reset();  // the caller of Execute still has it
  parked_.push_back(std::move(request));
}

bool NamespaceDb::WaitsForFileLeases(Request* request, const Operation& op, bool granted,
                                     Ready* ready) {
  if (op.shown.empty() && op.changed.empty() && op.changed_directories.empty()) return false;
  FileLeases::Wish wish{.shown = op.shown};  // a refusal changes nothing
  if (granted) wish = {op.shown, op.changed, op.changed_directories, op.claimed};
  const FileLeases::Verdict verdict =
      file_leases_.Ask(request->origin.session, wish, &request->told);
  if (verdict.asked) ready->runs.push_back([this] { listener_.OnRecall(); });
  if (verdict.in_the_way) {
    for (const uint64_t directory : op.changed_directories) lingering_.LeaseTaken(directory);
  }
  // What holders from before a restart report is what the others wait for.
  if (request->origin.method == wire::MDS_WROTE) return verdict.in_the_way;
  for (const uint64_t session : op.awaited) writers_.Await(session, clock_.Now());
  return verdict.in_the_way || op.context.awaits_holders || !op.awaited.empty();
}

Status NamespaceDb::BumpTagEpochIn(Txn* txn, uint64_t* epoch) {
  WEIR_ASSIGN_OR_RETURN(auto state, txn->GetRecord<StateRecord>(kStateKey));
  if (!state.has_value()) return {ErrorCode::kCorrupt, "the namespace has no state record"};
  *epoch = state->tag_epoch() + 1;
  state->set_tag_epoch(*epoch);
  txn->PutRecord(kStateKey, *state);
  return Status::Ok();
}

// The youngest batch that has to be durable before the answer is given.
uint64_t NamespaceDb::SeenBy(const Overlay::Seen& seen, const Waiting& waiting) {
  const bool ordered = waiting.ordered_within > Duration::zero();
  const uint64_t shown = ordered ? seen.others : seen.any;
  return waiting.effects.shows_counts ? std::max(shown, seen.counts) : shown;
}

// Joins the open batch when there is something to write; else waits for what was seen, if anything:
// for the batch whose commit is on its way, or for the next.
void NamespaceDb::Enqueue(Txn* txn, Waiting waiting, Ready* ready) {
  const bool writes = !txn->writes().empty();
  for (auto& [key, write] : txn->writes()) {
    if (key.front() == static_cast<char>(Table::kUntold)) {
      untold_.Note(ReadBigEndian(key, kFirstNumber), write.value.has_value());
    }
    if (waiting.quiet) {
      overlay_.PutQuietly(key, std::move(write.value), open_.number);
    } else {
      overlay_.Put(key, std::move(write.value), open_.number, txn->seen().reader, write.change);
    }
  }
  const uint64_t seen = SeenBy(txn->seen(), waiting);
  const bool ready_now = !writes && seen <= durable_batch_;
  if (ready_now) {
    ready->runs.push_back([this, shared = std::make_shared<Waiting>(std::move(waiting))] {
      Finish(std::move(*shared), Status::Ok());
    });
    return;
  }
  if (!writes && seen < open_.number) return behind_.push_back(std::move(waiting));
  const Effects& effects = waiting.effects;
  const bool early = waiting.early && waiting.done != nullptr && seen <= durable_batch_ &&
                     !effects.tags_changed && !effects.must_last && open_.early < kEarlyMost;
  if (early) {
    AnswerEarly(&waiting, ready);
  } else if (waiting.lazy) {
    open_.due = TimePoint();
  } else if (waiting.quiet) {
    if (open_.empty()) open_.due = clock_.Now() + kQuietMost;
  } else {
    WantCommit(ready);
  }
  open_.waiting.push_back(std::move(waiting));
}

// To whoever parses the answer that it is appended to, a field of that.
std::string NamespaceDb::OrderedTail(uint64_t order, uint64_t durable, int64_t stamp_ns) const {
  wire::OrderedAnswer tail;
  tail.mutable_ordered()->set_order(order);
  tail.mutable_ordered()->set_durable(durable);
  tail.mutable_ordered()->set_life(life_);
  tail.mutable_ordered()->set_stamp_ns(stamp_ns);
  return tail.SerializeAsString();
}

void NamespaceDb::AnswerEarly(Waiting* waiting, Ready* ready) {
  ready->runs.push_back(
      [done = std::exchange(waiting->done, nullptr),
       answer = std::move(waiting->answer) +
                OrderedTail(++last_order_, durable_order_, waiting->stamp_ns)]() mutable {
        done(Status::Ok(), std::move(answer));
      });
  waiting->turn.reset();  // the caller of Execute still has it
  open_.due = std::min(open_.due, clock_.Now() + waiting->ordered_within - kCommitTick);
  if (++open_.early == kEarlyCommitted) WantCommit(ready);
}

void NamespaceDb::WantCommit(Ready* ready) {
  if (std::exchange(commit_wanted_, true)) return;
  ready->commit = true;
  if (options_.on_prepared) options_.on_prepared();
}

void NamespaceDb::Commit(Done done) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    const bool all_durable = open_.empty() && durable_batch_ + 1 == open_.number;
    if (!broken_.ok() || all_durable) {
      ready.runs.push_back([done = std::move(done), status = broken_,
                            answer = OrderedTail(0, durable_order_, 0)] { done(status, answer); });
    } else {
      Waiting waiting;
      waiting.done = std::move(done);
      waiting.ordered_within = kCommitTick;  // wants to hear what is durable
      if (open_.empty()) {
        behind_.push_back(std::move(waiting));
      } else {
        open_.waiting.push_back(std::move(waiting));
        WantCommit(&ready);
      }
    }
  }
  RunReady(std::move(ready));
}

void NamespaceDb::Finish(Waiting waiting, const Status& status) {
  if (status.ok()) {
    if (waiting.tag_epoch != 0) listener_.OnTagEpoch(waiting.tag_epoch);
    for (const PurgeJob& job : waiting.effects.purges) listener_.OnPurge(job);
    if (waiting.effects.truncate.has_value()) listener_.OnTruncate(*waiting.effects.truncate);
  }
  if (waiting.done != nullptr) {
    waiting.done(status, status.ok() ? std::move(waiting.answer) : std::string());
  }
}

void NamespaceDb::RunCommits() {
  std::unique_lock lock(mutex_);
  while (true) {
    prepared_.wait(lock, [&] { return stopping_ || commit_wanted_; });
    if (stopping_ && open_.empty()) return;
    lock.unlock();
    CommitPrepared();
    lock.lock();
  }
}

void NamespaceDb::CommitLazy() {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    if (!open_.empty() && clock_.Now() >= open_.due) WantCommit(&ready);
  }
  RunReady(std::move(ready));
}

bool NamespaceDb::CommitPrepared() {
  Batch batch;
  WriteBatch writes;
  uint64_t last_order = 0;
  {
    const std::lock_guard lock(mutex_);
    commit_wanted_ = false;
    if (open_.empty()) return false;
    batch.number = open_.number + 1;
    std::swap(batch, open_);
    overlay_.CopyBatch(batch.number, &writes);
    last_order = last_order_;
  }
  Status status;
  if (!writes.empty()) {
    status = store_.Apply(writes, Durability::kDurable);
    full_ = status.ok() && !store_.AwaitRoom();
  }
  std::vector<Done> orphaned;
  {
    const std::lock_guard lock(mutex_);
    ++commits_;
    committed_operations_ += batch.waiting.size();
    durable_batch_ = batch.number;
    for (Waiting& waiting : behind_) batch.waiting.push_back(std::move(waiting));
    behind_.clear();
    if (status.ok()) {
      durable_order_ = last_order;
      overlay_.Committed(batch.number);
      for (const Waiting& waiting : batch.waiting) {
        durable_tag_epoch_ = std::max(durable_tag_epoch_, waiting.tag_epoch);
      }
    } else {
      if (batch.early + open_.early > 0) {
        broken_ = {ErrorCode::kIo, "names that were answered are lost, as the store failed (" +
                                       status.message() + "): restart the MDS"};
      }
      // What was prepared since builds on what is lost: it fails together with it.
      for (Waiting& waiting : open_.waiting) batch.waiting.push_back(std::move(waiting));
      const uint64_t next = open_.number + 1;
      durable_batch_ = open_.number;
      open_ = {};
      open_.number = next;
      commit_wanted_ = false;
      overlay_.Reset();
      untold_.Unlearn();
      classes_.Forget();
      leases_.set_recorded(false);  // that may be lost as well
      for (Waiting& waiting : batch.waiting) {
        writers_.Remove(waiting.new_writer);
        if (!waiting.effects.truncate.has_value()) continue;
        const auto lost = truncating_.find(waiting.effects.truncate->inode);
        if (lost == truncating_.end()) continue;
        if (lost->second.done != nullptr) orphaned.push_back(std::move(lost->second.done));
        for (Request& queued : lost->second.queued) orphaned.push_back(std::move(queued.done));
        file_leases_.EndCut(lost->first);
        truncating_.erase(lost);
      }
    }
  }
  // All are answered before the next may begin, which they do on this thread.
  std::vector<std::shared_ptr<void>> turns;
  for (Waiting& waiting : batch.waiting) turns.push_back(std::move(waiting.turn));
  for (Waiting& waiting : batch.waiting) {
    if (waiting.ordered_within > Duration::zero()) waiting.answer += OrderedTail(0, last_order, 0);
    Finish(std::move(waiting), status);
  }
  for (const Done& done : orphaned) done(status, {});
  return true;
}

uint64_t NamespaceDb::DurableTagEpoch() const {
  const std::lock_guard lock(mutex_);
  return durable_tag_epoch_;
}
bool NamespaceDb::AnyWait() const {
  const std::lock_guard lock(mutex_);
  return !parked_.empty() || !open_.empty() || !truncating_.empty();
}

bool NamespaceDb::commit_wanted() const {
  const std::lock_guard lock(mutex_);
  return commit_wanted_;
}

uint64_t NamespaceDb::put_aside() const {
  const std::lock_guard lock(mutex_);
  return last_aside_;
}
uint64_t NamespaceDb::commits() const {
  const std::lock_guard lock(mutex_);
  return commits_;
}
uint64_t NamespaceDb::committed_operations() const {
  const std::lock_guard lock(mutex_);
  return committed_operations_;
}

}  // namespace weir::mds
