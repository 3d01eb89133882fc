// How a NamespaceDb begins: formats an empty store, or reads what a former process left behind.
#include <sys/stat.h>

#include <utility>

#include "common/placement/striper.h"
#include "mds/ns/namespace_db.h"
#include "mds/ns/usage.h"

namespace weir::mds {
namespace {

// More than can have been given and not be durable: of two batches of kEarlyMost changes each, and
// of what waits for them.
constexpr uint64_t kInodesSkipped = 1 << 16;

}  // namespace

Result<std::unique_ptr<NamespaceDb>> NamespaceDb::Open(KvStore& store, Clock& clock,
                                                       ClusterView& cluster,
                                                       CommitListener& listener,
                                                       const Options& options) {
  std::unique_ptr<NamespaceDb> db(new NamespaceDb(store, clock, cluster, listener, options));
  WEIR_RETURN_IF_ERROR(db->Recover().Annotate("opening the namespace"));
  if (options.commit_thread) db->committer_ = std::thread([raw = db.get()] { raw->RunCommits(); });
  return db;
}

Status NamespaceDb::Recover() {
  const Result<std::string> stored = store_.Get(kStateKey);
  if (!stored.ok() && stored.code() != ErrorCode::kNotFound) return stored.status();
  if (!stored.ok()) return Format();
  WEIR_ASSIGN_OR_RETURN(const StateRecord state, DecodeValue<StateRecord>(*stored));
  durable_tag_epoch_ = state.tag_epoch();
  in_grace_ = true;
  leases_.set_recorded(state.leases_given());
  if (state.leases_given()) {
    leases_.AwaitUnknown();
    file_leases_.AwaitUnknown();
    writers_.AwaitMissing();
  }
  if (!state.usage_known()) WEIR_RETURN_IF_ERROR(CountUsage());
  WEIR_RETURN_IF_ERROR(LoadAnswers());
  WEIR_RETURN_IF_ERROR(LoadWriters());
  WEIR_RETURN_IF_ERROR(LoadKeepers());
  return LoadTruncates();
}

Status NamespaceDb::Format() {
  const int64_t now = clock_.WallNow().ns;
  InodeRecord root;
  root.set_mode(S_IFDIR | 0755);
  root.set_uid(options_.maker_uid);
  root.set_gid(options_.maker_gid);
  root.set_nlink(2);
  root.set_atime_ns(now);
  root.set_mtime_ns(now);
  root.set_ctime_ns(now);
  root.set_btime_ns(now);
  root.set_version(1);
  root.set_parent(kRootInode.value);
  root.set_next_cookie(kFirstCookie);
  const FileLayout plain;
  root.mutable_layout()->set_stripe_unit(plain.stripe_unit);
  root.mutable_layout()->set_stripe_count(plain.stripe_count);
  root.mutable_layout()->set_object_size(plain.object_size);
  root.mutable_layout()->set_pool(plain.pool.value);
  StateRecord state;
  state.set_next_inode(kRootInode.value + 1);
  state.set_inode_count(1);
  state.set_tag_epoch(1);
  state.set_usage_known(true);
  durable_tag_epoch_ = 1;
  WriteBatch batch;
  batch.Put(MakeKey(Table::kInode, kRootInode.value), EncodeValue(root));
  batch.Put(kStateKey, EncodeValue(state));
  return store_.Apply(batch, Durability::kDurable);
}

// Of a store from before directories counted what is below them.
Status NamespaceDb::CountUsage() {
  constexpr size_t kDirectoriesPerBatch = 1000;
  std::unordered_map<uint64_t, InodeRecord> directories;
  std::vector<std::pair<uint64_t, TreeUsage>> shares;  // parent, what is added there
  const std::unique_ptr<KvStore::Iterator> it = store_.NewIterator();
  const std::string end = PrefixEnd(MakeKey(Table::kInode));
  for (it->Seek(MakeKey(Table::kInode)); it->Valid() && it->key() < end; it->Next()) {
    WEIR_ASSIGN_OR_RETURN(InodeRecord record, DecodeValue<InodeRecord>(it->value()));
    const uint64_t inode = ReadBigEndian(it->key(), kFirstNumber);
    record.clear_below();  // of an attempt that did not end
    record.clear_told();
    if (inode != kRootInode.value && record.nlink() > 0) {
      shares.emplace_back(record.parent(), ShareOf(record));
    }
    if (S_ISDIR(record.mode())) directories.emplace(inode, std::move(record));
  }
  WEIR_RETURN_IF_ERROR(it->status());
  for (const auto& [parent, share] : shares) {
    for (uint64_t at = parent;; at = directories[at].parent()) {
      AddUsage(share, 1, directories[at].mutable_below());
      if (at == kRootInode.value) break;
    }
  }
  WriteBatch batch;
  size_t collected = 0;
  for (auto& [inode, record] : directories) {
    *record.mutable_told() = record.below();
    batch.Put(MakeKey(Table::kInode, inode), EncodeValue(record));
    if (++collected % kDirectoriesPerBatch != 0) continue;
    WEIR_RETURN_IF_ERROR(store_.Apply(batch, Durability::kDurable));
    batch = {};
  }
  WEIR_ASSIGN_OR_RETURN(const std::string stored, store_.Get(kStateKey));
  WEIR_ASSIGN_OR_RETURN(StateRecord state, DecodeValue<StateRecord>(stored));
  state.set_usage_known(true);
  batch.Put(kStateKey, EncodeValue(state));
  return store_.Apply(batch, Durability::kDurable);
}

Status NamespaceDb::LoadAnswers() {
  const std::string prefix = MakeKey(Table::kAnswer);
  Overlay::Seen seen;
  return overlay_.Scan(prefix, PrefixEnd(prefix), &seen, [&](std::string_view key, auto) {
    answers_[ReadBigEndian(key, kFirstNumber)].insert(ReadBigEndian(key, kSecondNumber));
    return true;
  });
}

Status NamespaceDb::LoadWriters() {
  const std::string lost = MakeKey(Table::kLostWriter);
  Overlay::Seen seen;
  WEIR_RETURN_IF_ERROR(overlay_.Scan(lost, PrefixEnd(lost), &seen, [&](std::string_view key, auto) {
    writers_.LoadLost(ReadBigEndian(key, kFirstNumber));
    return true;
  }));
  const std::string prefix = MakeKey(Table::kWriter);
  Status bad;
  const auto visit = [&](std::string_view key, std::string_view value) {
    WriterRecord record;
    if (!value.empty()) {
      Result<WriterRecord> stored = DecodeValue<WriterRecord>(value);
      bad = stored.status();
      if (!bad.ok()) return false;
      record = *std::move(stored);
    }
    writers_.Load(ReadBigEndian(key, kFirstNumber), record.number());
    return true;
  };
  WEIR_RETURN_IF_ERROR(overlay_.Scan(prefix, PrefixEnd(prefix), &seen, visit));
  return bad;
}

// Who is a keeper may have been told of files that are lost. Until he hears of that he asks for
// them by their numbers: these are nobody else's.
Status NamespaceDb::LoadKeepers() {
  const std::string prefix = MakeKey(Table::kKeeper);
  Overlay::Seen seen;
  WEIR_RETURN_IF_ERROR(
      overlay_.Scan(prefix, PrefixEnd(prefix), &seen, [&](std::string_view key, auto value) {
        keepers_[ReadBigEndian(key, kFirstNumber)] = value == kGivenUp;
        return true;
      }));
  if (keepers_.empty()) return Status::Ok();
  WEIR_ASSIGN_OR_RETURN(const std::string stored, store_.Get(kStateKey));
  WEIR_ASSIGN_OR_RETURN(StateRecord state, DecodeValue<StateRecord>(stored));
  state.set_next_inode(state.next_inode() + kInodesSkipped);
  WriteBatch batch;
  batch.Put(kStateKey, EncodeValue(state));
  return store_.Apply(batch, Durability::kDurable);
}

Status NamespaceDb::LoadTruncates() {
  const std::string prefix = MakeKey(Table::kTruncate);
  Overlay::Seen seen;
  Status bad;
  const auto visit = [&](std::string_view key, std::string_view value) {
    Result<TruncateRecord> record = DecodeValue<TruncateRecord>(value);
    if (!record.ok()) {
      bad = record.status();
      return false;
    }
    const uint64_t inode = ReadBigEndian(key, kFirstNumber);
    truncating_[inode].job = {inode, std::move(*record)};
    file_leases_.BeginCut(inode);
    return true;
  };
  WEIR_RETURN_IF_ERROR(overlay_.Scan(prefix, PrefixEnd(prefix), &seen, visit));
  return bad;
}

std::vector<TruncateJob> NamespaceDb::PendingTruncates() {
  const std::lock_guard lock(mutex_);
  std::vector<TruncateJob> jobs;
  for (const auto& [inode, truncating] : truncating_) jobs.push_back(truncating.job);
  return jobs;
}

Result<std::vector<uint64_t>> NamespaceDb::LockHolders() {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> sessions;
  const std::string prefix = MakeKey(Table::kLockHolder);
  Overlay::Seen seen;
  WEIR_RETURN_IF_ERROR(
      overlay_.Scan(prefix, PrefixEnd(prefix), &seen, [&](std::string_view key, auto) {
        sessions.push_back(ReadBigEndian(key, kFirstNumber));
        return true;
      }));
  return sessions;
}

std::vector<uint64_t> NamespaceDb::Keepers(bool given_up) const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> sessions;
  for (const auto& [session, is_given_up] : keepers_) {
    if (is_given_up == given_up) sessions.push_back(session);
  }
  return sessions;
}

Result<std::vector<PurgeJob>> NamespaceDb::PendingPurges() {
  const std::lock_guard lock(mutex_);
  std::vector<PurgeJob> jobs;
  const std::string prefix = MakeKey(Table::kPurge);
  Overlay::Seen seen;
  Status bad;
  const auto visit = [&](std::string_view key, std::string_view value) {
    Result<PurgeRecord> record = DecodeValue<PurgeRecord>(value);
    if (!record.ok()) {
      bad = record.status();
      return false;
    }
    jobs.push_back({ReadBigEndian(key, kFirstNumber), record->layout(), record->data_bytes()});
    return true;
  };
  WEIR_RETURN_IF_ERROR(overlay_.Scan(prefix, PrefixEnd(prefix), &seen, visit));
  WEIR_RETURN_IF_ERROR(bad);
  return jobs;
}

}  // namespace weir::mds
