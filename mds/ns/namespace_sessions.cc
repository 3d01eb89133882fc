// What a NamespaceDb remembers of sessions: given answers, open files, and work that outlives a
// request.
#include <algorithm>
#include <iterator>
#include <utility>

#include "common/net/sub_session.h"
#include "mds/ns/namespace_db.h"
#include "mds/ns/usage.h"

namespace weir::mds {
namespace {
void Ignore(const Status&, const std::string&) {}

// What a session wrote and did not report lies behind the end of its files.
Status MarkLooseEnds(Operation& op, uint64_t session) {
  for (const uint64_t inode : op.context.opens.WrittenBy(session)) {
    Result<Inode> file = op.Load(inode);
    if (file.code() == ErrorCode::kStale) continue;
    WEIR_RETURN_IF_ERROR(file.status());
    if (!file->IsRegular() || file->rec.loose_end()) continue;
    file->rec.set_loose_end(true);
    op.StoreQuietly(*file);
  }
  return Status::Ok();
}
}  // namespace

// What a removal kept for its session it keeps again when its answer is given again: it may be
// heard in another life of the MDS than that which made it.
Status NamespaceDb::KeepAgain(Operation& op, const AnswerRecord& record) {
  switch (record.method()) {
    case wire::MDS_UNLINK:
    case wire::MDS_RMDIR:
    case wire::MDS_RENAME:
      break;
    default:
      return Status::Ok();
  }
  wire::TouchedReply answer;
  if (!answer.ParseFromString(record.body()) || answer.kept() == 0) return Status::Ok();
  const Result<Inode> inode = op.Load(answer.kept());
  if (inode.code() == ErrorCode::kStale) return Status::Ok();  // he has let it go since
  WEIR_RETURN_IF_ERROR(inode.status());
  lingering_.Keep(op.context.session, inode->id);
  return Status::Ok();
}

// True: it is taken care of. Never done again because its answer could not be read.
bool NamespaceDb::AnswerRepeated(Request* request, Ready* ready) {
  const RequestOrigin& origin = request->origin;
  const auto session = answers_.find(origin.sub_session);
  if (origin.request_id == 0 || session == answers_.end()) return false;
  if (!session->second.contains(origin.request_id)) return false;
  Operation op = MakeOperation(origin, ReadsOf(*request));
  auto record = op.txn.GetRecord<AnswerRecord>(
      MakeKey(Table::kAnswer, origin.sub_session, origin.request_id));
  Status status = record.status();
  uint64_t new_writer = 0;
  if (status.ok() && !record->has_value()) return false;
  if (status.ok()) status = KeepAgain(op, **record);
  if (status.ok() && (*record)->opened_inode() != 0) {
    op.Opened((*record)->opened_inode(), (*record)->open_flags());
    status = RecordWriter(&op, &new_writer);
  }
  if (!status.ok()) {
    op.TakeBack();
    if (new_writer != 0) writers_.Remove(new_writer);
    if (!op.txn.missing().empty()) {
      PutAside(std::move(*request), std::move(op.txn.missing()), ready);
    } else {
      ready->runs.push_back([done = std::move(request->done), status] { done(status, {}); });
    }
    return true;
  }
  Waiting waiting{std::move(request->done), (*record)->body(), std::move(op.effects)};
  waiting.turn = std::exchange(request->origin.turn, nullptr);
  waiting.new_writer = new_writer;
  Enqueue(&op.txn, std::move(waiting), ready);
  return true;
}

void NamespaceDb::Keep(const RequestOrigin& origin, const std::string& answer,
                       const Effects& effects, Txn* txn) {
  if (origin.request_id == 0) return;
  TrimAnswers(origin, txn);
  AnswerRecord record;
  record.set_method(origin.method);
  record.set_body(answer);
  record.set_opened_inode(effects.opened_inode);
  record.set_open_flags(effects.open_flags);
  txn->PutRecord(MakeKey(Table::kAnswer, origin.sub_session, origin.request_id), record);
  answers_[origin.sub_session].insert(origin.request_id);
}

void NamespaceDb::TrimAnswers(const RequestOrigin& origin, Txn* txn) {
  const auto session = answers_.find(origin.sub_session);
  if (session == answers_.end()) return;
  std::set<uint64_t>& ids = session->second;
  while (!ids.empty() && *ids.begin() < origin.acked_below) {
    txn->Delete(MakeKey(Table::kAnswer, origin.sub_session, *ids.begin()));
    ids.erase(ids.begin());
  }
}

// The session once in its life; a file whenever others wrote to it before.
Status NamespaceDb::RecordWriter(Operation* op, uint64_t* new_writer) {
  const uint64_t session = op->context.session;
  const Effects& effects = op->effects;
  if (!effects.may_write) return Status::Ok();
  if (!writers_.Knows(session)) {
    WEIR_ASSIGN_OR_RETURN(auto state, op->txn.GetCounter<StateRecord>(kStateKey));
    if (!state.has_value()) return {ErrorCode::kCorrupt, "the namespace has no state record"};
    WriterRecord record;
    record.set_number(state->last_writer() + 1);
    state->set_last_writer(record.number());
    op->txn.PutRecord(kStateKey, *state);
    op->txn.PutRecord(MakeKey(Table::kWriter, session), record);
    writers_.Add(session, record.number());
    *new_writer = session;
  }
  const uint64_t number = writers_.NumberOf(session);
  if (number == 0) writers_.sole().HasSeveral(effects.opened_inode);  // files cannot name it
  if (effects.opened_inode == 0 || number == 0) return Status::Ok();
  Result<Inode> file = op->Load(effects.opened_inode);
  if (file.code() == ErrorCode::kStale) return Status::Ok();
  WEIR_RETURN_IF_ERROR(file.status());
  const auto& named = file->rec.writers();
  const bool others =
      std::any_of(named.begin(), named.end(), [number](uint64_t one) { return one != number; });
  if (others) writers_.sole().HasSeveral(file->id);
  if (!file->IsRegular() || std::find(named.begin(), named.end(), number) != named.end()) {
    return Status::Ok();
  }
  if (!opens_.WrittenElsewhere(session, file->id)) file->rec.clear_writers();
  file->rec.add_writers(number);
  op->StoreQuietly(*file);
  return Status::Ok();
}

void NamespaceDb::ForgetAnswers(uint64_t session) {
  Execute(
      {},
      [this, session](Operation& op) -> Result<std::string> {
        for (uint32_t i = 0; i < net::kMostConnections; ++i) {
          RequestOrigin gone;
          gone.sub_session = net::OnConnection(session, i);
          gone.acked_below = UINT64_MAX;
          TrimAnswers(gone, &op.txn);
          answers_.erase(gone.sub_session);
        }
        return std::string();
      },
      Ignore);
}

std::vector<uint64_t> NamespaceDb::SessionsWithAnswers() {
  const std::lock_guard lock(mutex_);
  std::set<uint64_t> sessions;
  for (const auto& [sub_session, ids] : answers_) sessions.insert(net::SessionOf(sub_session));
  return {sessions.begin(), sessions.end()};
}

bool NamespaceDb::HasAnswer(uint64_t sub_session, uint64_t request_id) const {
  const std::lock_guard lock(mutex_);
  const auto session = answers_.find(sub_session);
  return session != answers_.end() && session->second.contains(request_id);
}

// A cut leaves at most what the file was counted with, less what it freed. Where somebody has
// changed the file meanwhile, what it is counted with may be of after the cut: it stays.
void NamespaceDb::CountFreed(uint64_t freed_bytes, Truncating* truncating, Txn* txn) {
  const TruncateRecord& cut = truncating->job.record;
  const uint64_t left = cut.data_bytes() - std::min(cut.data_bytes(), freed_bytes);
  const std::string key = MakeKey(Table::kInode, truncating->job.inode);
  auto record = txn->GetRecord<InodeRecord>(key);
  if (cut.data_bytes() == 0 || !record.ok() || !record->has_value()) return;
  Inode inode{truncating->job.inode, std::move(**record)};
  if (inode.rec.version() != cut.version() || inode.DataBeforeEnd() <= left) return;
  inode.SetSize(inode.rec.size(), left);
  inode.rec.set_version(cut.version() + 1);
  txn->PutRecord(key, inode.rec);
  if (truncating->done == nullptr) return;
  wire::EntryReply answer;
  WEIR_CHECK(answer.ParseFromString(truncating->answer), "a cut that counts is a SETATTR's");
  answer.mutable_attr()->set_blocks(inode.Blocks());
  answer.mutable_attr()->set_version(inode.rec.version());
  truncating->answer = answer.SerializeAsString();
}

void NamespaceDb::FinishTruncate(uint64_t inode, uint64_t freed_bytes) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    const auto found = truncating_.find(inode);
    if (found == truncating_.end()) return;
    Truncating& truncating = found->second;
    Txn txn(overlay_);
    txn.Delete(MakeKey(Table::kTruncate, inode));
    CountFreed(freed_bytes, &truncating, &txn);
    if (truncating.done != nullptr) {
      Keep(truncating.origin, truncating.answer, truncating.opened, &txn);
    }
    // Others go on waiting until this is durable.
    Done done = [this, inode, original = std::move(truncating.done)](const Status& status,
                                                                     std::string answer) {
      if (original != nullptr) original(status, std::move(answer));
      EndTruncate(inode, status);
    };
    Enqueue(&txn, {std::move(done), std::move(truncating.answer), {}}, &ready);
  }
  RunReady(std::move(ready));
}

void NamespaceDb::EndTruncate(uint64_t inode, const Status& status) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    const auto found = truncating_.find(inode);
    if (found == truncating_.end()) return;
    std::vector<Request> queued = std::move(found->second.queued);
    truncating_.erase(found);
    file_leases_.EndCut(inode);
    for (Request& request : queued) {
      if (status.ok()) {
        ExecuteLocked(std::move(request), &ready);
      } else {
        ready.runs.push_back([done = std::move(request.done), status] { done(status, {}); });
      }
    }
  }
  RunReady(std::move(ready));
}

// Not durable, it is purged again, which finds nothing.
void NamespaceDb::FinishPurge(uint64_t inode) {
  Execute(
      {.lazy = true},
      [inode](Operation& op) -> Result<std::string> {
        op.txn.Delete(MakeKey(Table::kPurge, inode));
        return std::string();
      },
      Ignore);
}

void NamespaceDb::Reclaim(uint64_t session, const std::vector<uint64_t>& inodes, bool resumes) {
  const std::lock_guard lock(mutex_);
  for (const uint64_t inode : inodes) {
    if (resumes && opens_.IsOpenBy(session, inode)) continue;
    // How it was opened is not known any more: assume for writing.
    opens_.Open(session, inode, true);
    writers_.sole().HasSeveral(inode);
  }
}

// It may have buffered data of them: others wait until that has been stored.
Status NamespaceDb::CameBack(Operation& op, const std::vector<uint64_t>& inodes) {
  const uint64_t session = op.context.session;
  const uint64_t number = writers_.NumberOf(session);
  if (number != 0) {
    WEIR_RETURN_IF_ERROR(op.Fetch(inodes));
    for (const uint64_t inode : inodes) {
      const Result<Inode> file = op.Load(inode);
      if (!file.ok()) continue;
      const auto& named = file->rec.writers();
      if (std::find(named.begin(), named.end(), number) == named.end()) continue;
      file_leases_.Restore(session, inode);
    }
  }
  writers_.CameBack(session);
  return Status::Ok();
}

void NamespaceDb::AddKeeper(Operation& op, bool knows_loss) {
  if (!knows_loss && WasGivenUp(op.context.session)) return;
  keepers_[op.context.session] = false;
  op.txn.Put(MakeKey(Table::kKeeper, op.context.session), "");
}

bool NamespaceDb::WasGivenUp(uint64_t session) const {
  const auto keeper = keepers_.find(session);
  return keeper != keepers_.end() && keeper->second;
}

void NamespaceDb::GiveUpKeeper(uint64_t session) {
  Execute(
      {},
      [this, session](Operation& op) -> Result<std::string> {
        keepers_[session] = true;
        op.txn.Put(MakeKey(Table::kKeeper, session), std::string(kGivenUp));
        return std::string();
      },
      Ignore);
}

void NamespaceDb::ForgetGivenUp(uint64_t session) {
  Execute(
      {.lazy = true},
      [this, session](Operation& op) -> Result<std::string> {
        const auto found = keepers_.find(session);
        if (found == keepers_.end() || !found->second) return std::string();
        keepers_.erase(found);
        op.txn.Delete(MakeKey(Table::kKeeper, session));
        return std::string();
      },
      Ignore);
}

bool NamespaceDb::MayWrite(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  return opens_.MayWrite(session);
}

std::vector<uint64_t> NamespaceDb::SessionsWithOpenFiles() const {
  const std::lock_guard lock(mutex_);
  return opens_.Sessions();
}

std::vector<uint64_t> NamespaceDb::MissingWriters() const {
  const std::lock_guard lock(mutex_);
  return writers_.Missing();
}

std::vector<uint64_t> NamespaceDb::OverdueWriters(Duration patience) const {
  const std::lock_guard lock(mutex_);
  return writers_.Overdue(clock_.Now(), patience);
}

void NamespaceDb::RetryParked() {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Request> parked = std::exchange(parked_, {});
    file_leases_.BeginRound();
    writers_.BeginRound();
    for (Request& request : parked) ExecuteLocked(std::move(request), &ready);
  }
  RunReady(std::move(ready));
}

// At once, whatever is in memory: the session may begin anew right behind it.
void NamespaceDb::DropSession(uint64_t session, bool told_all) {
  std::vector<uint64_t> held;
  std::vector<Request> dropped;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    held = opens_.OpenBy(session);
    const auto its = std::stable_partition(
        parked_.begin(), parked_.end(),
        [session](const Request& request) { return request.origin.session != session; });
    std::move(its, parked_.end(), std::back_inserter(dropped));
    parked_.erase(its, parked_.end());
  }
  // Into memory, while others go on.
  for (const uint64_t inode : held) (void)store_.Get(MakeKey(Table::kInode, inode)).ok();
  leases_.End(session);
  file_leases_.End(session);
  Execute(
      {.unrepeatable = true},
      [this, session, told_all](Operation& op) -> Result<std::string> {
        if (writers_.Knows(session)) op.txn.Delete(MakeKey(Table::kWriter, session));
        const auto keeper = keepers_.find(session);
        if (keeper != keepers_.end() && (told_all || !keeper->second)) {
          keepers_.erase(keeper);
          op.txn.Delete(MakeKey(Table::kKeeper, session));
        }
        const auto lost = writers_.Drop(session, told_all);
        if (lost.has_value()) op.txn.Put(MakeKey(Table::kLostWriter, *lost), "");
        op.context.grants.EndSession(session);
        if (!told_all) WEIR_RETURN_IF_ERROR(MarkLooseEnds(op, session));
        for (const uint64_t inode : lingering_.KeepOnly(session, {})) {
          WEIR_RETURN_IF_ERROR(op.PurgeIfUnused(inode));
        }
        for (const uint64_t inode : op.context.opens.CloseAll(session)) {
          WEIR_RETURN_IF_ERROR(op.PurgeIfUnused(inode));
        }
        return std::string();
      },
      Ignore);
  RetryParked();  // behind it: who opens one of these files cuts off what was left behind its end
}

void NamespaceDb::Keep(uint64_t session, const std::vector<uint64_t>& inodes, bool only) {
  std::vector<uint64_t> others;
  {
    const std::lock_guard lock(mutex_);
    if (only) others = lingering_.KeepOnly(session, inodes);
    for (const uint64_t inode : inodes) lingering_.Keep(session, inode);
  }
  PurgeUnused(std::move(others));
}

void NamespaceDb::EndLingering() {
  constexpr size_t kAtOnce = 4096;  // some ten milliseconds under the lock
  std::vector<uint64_t> due;
  {
    const std::lock_guard lock(mutex_);
    due = lingering_.TakeDue(kAtOnce);
  }
  PurgeUnused(std::move(due));
}

void NamespaceDb::PurgeUnused(std::vector<uint64_t> inodes) {
  if (inodes.empty()) return;
  Execute(
      {.lazy = true},
      [inodes = std::move(inodes)](Operation& op) -> Result<std::string> {
        WEIR_RETURN_IF_ERROR(op.BeforePurge(inodes));
        for (const uint64_t inode : inodes) WEIR_RETURN_IF_ERROR(op.PurgeIfUnused(inode));
        return std::string();
      },
      Ignore);
}

void NamespaceDb::SetLockHolder(uint64_t session, bool holds,
                                std::function<void(const Status&)> done) {
  Execute(
      {},
      [session, holds](Operation& op) -> Result<std::string> {
        const std::string key = MakeKey(Table::kLockHolder, session);
        if (holds) {
          op.txn.Put(key, "");
        } else {
          op.txn.Delete(key);
        }
        return std::string();
      },
      [done = std::move(done)](const Status& status, const std::string&) { done(status); });
}

void NamespaceDb::TellUsage() {
  constexpr size_t kAtOnce = 128;  // some milliseconds under the lock
  Execute(
      {.quiet = true},
      [](Operation& op) -> Result<std::string> {
        WEIR_RETURN_IF_ERROR(TellSome(op, kAtOnce).status());
        return std::string();
      },
      Ignore);
}

void NamespaceDb::EndGrace() {
  Execute(
      {},
      [this](Operation& op) -> Result<std::string> {
        in_grace_ = false;
        op.context.in_grace = false;
        std::vector<uint64_t> orphans;
        const std::string prefix = MakeKey(Table::kOrphan);
        WEIR_RETURN_IF_ERROR(
            op.txn.Scan(prefix, PrefixEnd(prefix), [&](std::string_view key, auto) {
              orphans.push_back(ReadBigEndian(key, kFirstNumber));
              return true;
            }));
        WEIR_RETURN_IF_ERROR(op.BeforePurge(orphans));
        for (const uint64_t inode : orphans) WEIR_RETURN_IF_ERROR(op.PurgeIfUnused(inode));
        return std::string();
      },
      Ignore);
}

void NamespaceDb::BumpTagEpoch() {
  Execute(
      {},
      [](Operation& op) -> Result<std::string> {
        op.TagsChanged();
        return std::string();
      },
      Ignore);
}

}  // namespace weir::mds
