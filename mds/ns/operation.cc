#include "mds/ns/operation.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "common/base/buffer.h"
#include "common/placement/striper.h"
#include "mds/ns/class_space.h"
#include "mds/ns/usage.h"

namespace weir::mds {

bool Inode::IsDirectory() const {
  return S_ISDIR(rec.mode());
}
bool Inode::IsRegular() const {
  return S_ISREG(rec.mode());
}

uint64_t Inode::DataBeforeEnd() const {
  return rec.size() - std::min(rec.size(), rec.hole_bytes());
}

uint64_t Inode::DataBytes() const {
  return DataBeforeEnd() + rec.beyond_bytes();
}

uint64_t Inode::Reach() const {
  return std::max(rec.size(), rec.allocated_end());
}

void Inode::SetSize(uint64_t size, uint64_t data_bytes) {
  const uint64_t grown = size - std::min(size, rec.size());
  const uint64_t passed = std::min(grown, rec.beyond_bytes());
  rec.set_beyond_bytes(rec.beyond_bytes() - passed);
  rec.set_size(size);
  rec.set_hole_bytes(size - std::min(size, data_bytes + passed));
}

void Inode::DropBeyondEnd() {
  rec.set_allocated_end(std::min(rec.allocated_end(), rec.size()));
  rec.set_beyond_bytes(0);
}

uint64_t Inode::Blocks() const {
  if (!IsRegular()) return 0;
  return (DataBytes() + kBlockSize - 1) / kBlockSize * (kBlockSize / 512);
}

uint64_t DataAfter(const Inode& inode, const wire::SpaceChange& change) {
  const uint64_t most = inode.DataBeforeEnd() + std::min(change.wrote_bytes(), kMaxFileSize);
  return most - std::min(most, change.freed_bytes());
}

Status InodeError(ErrorCode code, uint64_t inode, std::string_view what) {
  return {code, "inode " + std::to_string(inode) + " " + std::string(what)};
}

namespace {
Result<Inode> OnlyDirectory(Inode loaded) {
  if (loaded.IsDirectory()) return loaded;
  return InodeError(ErrorCode::kNotDirectory, loaded.id, "is not a directory");
}
}  // namespace

Status CheckNewName(std::string_view name) {
  if (name.empty()) return {ErrorCode::kNotFound, "a name must not be empty"};
  if (name.size() > kNameMax) {
    return {ErrorCode::kNameTooLong,
            "a name of " + std::to_string(name.size()) + " bytes; the longest allowed has 255"};
  }
  if (name == "." || name == "..") return {ErrorCode::kExists, "'.' and '..' always exist"};
  if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos) {
    return {ErrorCode::kInvalid, "a name must not contain '/' or NUL"};
  }
  return Status::Ok();
}

void Operation::SetCaller(const wire::Caller& caller) {
  who_.uid = caller.uid();
  who_.gid = caller.gid();
  who_.groups.assign(caller.groups().begin(), caller.groups().end());
  who_.exe = caller.exe();
  who_.cgroup = caller.cgroup();
  who_.capabilities = caller.capabilities();
  who_.uids.clear();
  who_.gids.clear();
  for (const wire::IdRange& range : caller.uids()) {
    who_.uids.push_back({range.first(), range.count()});
  }
  for (const wire::IdRange& range : caller.gids()) {
    who_.gids.push_back({range.first(), range.count()});
  }
  who_.limited = caller.limited();
  who_.unknown = caller.unknown();
}

Result<Inode> Operation::Load(uint64_t inode) {
  WEIR_ASSIGN_OR_RETURN(auto record, txn.GetRecord<InodeRecord>(MakeKey(Table::kInode, inode)));
  if (!record.has_value()) return InodeError(ErrorCode::kStale, inode, "does not exist any more");
  return Inode{inode, std::move(*record)};
}

Status Operation::Fetch(const std::vector<uint64_t>& inodes) {
  std::vector<std::string> keys;
  keys.reserve(inodes.size());
  for (const uint64_t inode : inodes) keys.push_back(MakeKey(Table::kInode, inode));
  return txn.Fetch(keys);
}

Result<Inode> Operation::LoadDirectory(uint64_t inode) {
  WEIR_ASSIGN_OR_RETURN(Inode loaded, Load(inode));
  return OnlyDirectory(std::move(loaded));
}

Result<Inode> Operation::LoadParent(uint64_t inode) {
  const std::string key = MakeKey(Table::kInode, inode);
  WEIR_ASSIGN_OR_RETURN(auto record, txn.GetSteady<InodeRecord>(key));
  if (!record.has_value()) return InodeError(ErrorCode::kStale, inode, "does not exist any more");
  return OnlyDirectory({inode, std::move(*record)});
}

void Operation::Changed(Inode* inode) const {
  inode->rec.set_ctime_ns(now());
  inode->rec.set_version(inode->rec.version() + 1);
}

void Operation::ChangedAt(int64_t ctime_ns, Inode* inode) const {
  inode->rec.set_ctime_ns(std::max(inode->rec.ctime_ns(), context.stamps.Saw(ctime_ns)));
  inode->rec.set_version(inode->rec.version() + 1);
}

bool MayHaveCapability(const InodeRecord& inode) {
  return inode.has_capability() ? inode.capability() : inode.has_xattrs();
}

void Operation::DropCapability(Inode* inode) {
  if (!MayHaveCapability(inode->rec)) return;
  txn.Delete(MakeKey(Table::kXattr, inode->id, kFileCapability));
  inode->rec.set_capability(false);
}

// Sessions repeat what they did in orders of their own: somebody's later change may be there
// already.
void Operation::Modified(Inode* directory) const {
  InodeRecord& rec = directory->rec;
  const bool was_later = context.replayed && rec.ctime_ns() > now();
  rec.set_mtime_ns(was_later ? std::max(rec.mtime_ns(), now()) : now());
  const int64_t ctime_ns = rec.ctime_ns();
  Changed(directory);
  if (was_later) rec.set_ctime_ns(ctime_ns);
}

Result<DentryRecord> Operation::FindDentry(uint64_t directory, std::string_view name) {
  WEIR_ASSIGN_OR_RETURN(auto record,
                        txn.GetRecord<DentryRecord>(MakeKey(Table::kDentry, directory, name)));
  if (!record.has_value()) {
    return Status(ErrorCode::kNotFound,
                  "no '" + std::string(name) + "' in directory " + std::to_string(directory));
  }
  return std::move(*record);
}

void Operation::AddDentry(Inode* directory, std::string_view name, const Inode& target) {
  DentryRecord dentry;
  dentry.set_cookie(directory->rec.next_cookie());
  directory->rec.set_next_cookie(dentry.cookie() + 1);
  directory->rec.set_entries(directory->rec.entries() + 1);
  if (target.IsDirectory()) directory->rec.set_nlink(directory->rec.nlink() + 1);
  RetargetDentry(directory->id, name, std::move(dentry), target);
}

void Operation::RetargetDentry(uint64_t directory, std::string_view name, DentryRecord dentry,
                               const Inode& target) {
  dentry.set_inode(target.id);
  dentry.set_mode(target.rec.mode() & S_IFMT);
  txn.PutRecord(MakeKey(Table::kDentry, directory, name), dentry);
  CookieRecord cookie;
  cookie.set_name(std::string(name));
  cookie.set_inode(dentry.inode());
  cookie.set_mode(dentry.mode());
  txn.PutRecord(MakeKey(Table::kCookie, directory, dentry.cookie()), cookie);
}

void Operation::RemoveDentry(Inode* directory, std::string_view name, const DentryRecord& dentry) {
  txn.Delete(MakeKey(Table::kDentry, directory->id, name));
  txn.Delete(MakeKey(Table::kCookie, directory->id, dentry.cookie()));
  directory->rec.set_entries(directory->rec.entries() - 1);
  if (S_ISDIR(dentry.mode())) directory->rec.set_nlink(directory->rec.nlink() - 1);
}

Result<StateRecord> Operation::LoadState() {
  WEIR_ASSIGN_OR_RETURN(auto state, txn.GetCounter<StateRecord>(kStateKey));
  if (!state.has_value()) return Status(ErrorCode::kCorrupt, "the namespace has no state record");
  return std::move(*state);
}

Status Operation::CheckRoom() const {
  if (!context.full) return Status::Ok();
  return {
      ErrorCode::kNoSpace,
      "the metadata server has no room for names; delete some, or free space where its image is"};
}

Result<Inode> Operation::NewInode(const Inode& parent, std::string_view name, uint32_t mode) {
  WEIR_RETURN_IF_ERROR(CheckRoom());
  WEIR_ASSIGN_OR_RETURN(StateRecord state, LoadState());
  Inode inode;
  inode.id = context.replayed_inode != 0 ? context.replayed_inode : state.next_inode();
  state.set_next_inode(std::max(state.next_inode(), inode.id + 1));
  if (context.replayed_inode == 0) context.writers.sole().Made(inode.id);
  if (context.replayed_inode != 0) {
    WEIR_ASSIGN_OR_RETURN(const auto taken, txn.Get(MakeKey(Table::kInode, inode.id)));
    if (taken.has_value()) return InodeError(ErrorCode::kStale, inode.id, "is somebody else's");
  }
  state.set_inode_count(state.inode_count() + 1);
  txn.PutRecord(kStateKey, state);

  InodeRecord& rec = inode.rec;
  const bool inherits_group = (parent.rec.mode() & S_ISGID) != 0;
  rec.set_uid(who_.uid);
  rec.set_gid(inherits_group ? parent.rec.gid() : who_.gid);
  if (inherits_group && S_ISDIR(mode)) mode |= S_ISGID;
  const bool may_run_as_group = !inherits_group || who_.MayRunAsGroup(parent.rec);
  if (!S_ISDIR(mode) && (mode & S_IXGRP) != 0 && !may_run_as_group) {
    mode &= ~static_cast<uint32_t>(S_ISGID);
  }
  rec.set_mode(mode);
  rec.set_nlink(S_ISDIR(mode) ? 2 : 1);
  rec.set_atime_ns(now());
  rec.set_mtime_ns(now());
  rec.set_ctime_ns(now());
  rec.set_btime_ns(now());
  rec.set_version(1);
  rec.set_parent(parent.id);
  rec.set_name(std::string(name));
  *rec.mutable_layout() = parent.rec.layout();
  if (S_ISDIR(mode)) rec.set_next_cookie(kFirstCookie);
  return inode;
}

Status Operation::DropLink(Inode* inode, uint64_t parent, std::string_view name) {
  InodeRecord& rec = inode->rec;
  const bool primary = rec.parent() == parent && rec.name() == name;
  if (primary) Count(parent, ShareOf(rec), -1);
  rec.set_nlink(inode->IsDirectory() ? 0 : rec.nlink() - 1);
  Changed(inode);
  if (rec.nlink() == 0) return DropLastLink(inode, parent);
  if (!primary) {
    txn.Delete(MakeKey(Table::kBackref, inode->id, parent, name));
    Store(*inode);
    return Status::Ok();
  }
  // The primary link goes: the first of the others takes its place.
  const std::string prefix = MakeKey(Table::kBackref, inode->id);
  std::string heir;
  WEIR_RETURN_IF_ERROR(txn.Scan(prefix, PrefixEnd(prefix), [&](std::string_view key, auto) {
    heir = key;
    return false;
  }));
  if (heir.size() <= kNameAfterTwo) {
    return InodeError(ErrorCode::kCorrupt, inode->id, "counts more links than are known");
  }
  rec.set_parent(ReadBigEndian(heir, kSecondNumber));
  rec.set_name(heir.substr(kNameAfterTwo));
  Count(rec.parent(), ShareOf(rec), 1);
  txn.Delete(heir);
  Store(*inode);
  return Status::Ok();
}

Status Operation::DropLastLink(Inode* inode, uint64_t parent) {
  if (!context.opens.IsOpen(inode->id)) {
    // Its class has room again, though it may stay for a moment.
    WEIR_RETURN_IF_ERROR(DropCharge(*this, *inode));
    inode->rec.set_charged_bytes(0);
  }
  Store(*inode);
  txn.Put(MakeKey(Table::kOrphan, inode->id), "");
  const Lingering& lingering = context.lingering;
  if (keeps) effects.kept = inode->id;
  if (lingering.OthersKnow(context.session, inode->id, parent) && lingering.HasRoom()) {
    effects.stays = inode->id;
  }
  if (effects.kept != 0 || effects.stays != 0 || IsNeeded(inode->id)) return Status::Ok();
  return Purge(*inode);
}

bool Operation::IsNeeded(uint64_t inode) const {
  return context.in_grace || context.opens.IsOpen(inode) || context.lingering.Stays(inode);
}

bool Operation::IsWrittenByNobodyElse(const Inode& file) const {
  const uint64_t own = context.writers.NumberOf(context.session);
  const auto& named = file.rec.writers();
  return context.writers.sole().HasOne(file.id) && !HasLooseEnd(file) &&
         std::all_of(named.begin(), named.end(), [own](uint64_t one) { return one == own; });
}

Status Operation::Purge(const Inode& inode, bool blank) {
  if (inode.rec.has_xattrs()) {
    const std::string xattrs = MakeKey(Table::kXattr, inode.id);
    WEIR_RETURN_IF_ERROR(txn.Scan(xattrs, PrefixEnd(xattrs), [&](std::string_view key, auto) {
      txn.Delete(std::string(key));
      return true;
    }));
  }
  txn.Delete(MakeKey(Table::kInode, inode.id));
  txn.Delete(MakeKey(Table::kOrphan, inode.id));
  if (context.file_leases.IsBeingCut(inode.id)) txn.Delete(MakeKey(Table::kTruncate, inode.id));
  WEIR_RETURN_IF_ERROR(DropCharge(*this, inode));
  if (inode.IsDirectory()) txn.Delete(MakeKey(Table::kUntold, inode.id));
  if (inode.rec.quota_bytes() > 0 || inode.rec.quota_files() > 0) {
    WEIR_RETURN_IF_ERROR(AddQuotaCount(-1));
  }
  WEIR_ASSIGN_OR_RETURN(StateRecord state, LoadState());
  state.set_inode_count(state.inode_count() - 1);
  txn.PutRecord(kStateKey, state);
  effects.gone.push_back(inode.id);
  if (!inode.IsRegular()) return Status::Ok();
  if (blank && inode.Reach() == 0 && IsWrittenByNobodyElse(inode)) return Status::Ok();
  PurgeRecord purge;
  *purge.mutable_layout() = inode.rec.layout();
  purge.set_data_bytes(inode.Blocks() * 512);
  txn.PutRecord(MakeKey(Table::kPurge, inode.id), purge);
  effects.purges.push_back({inode.id, inode.rec.layout(), purge.data_bytes()});
  return Status::Ok();
}

Status Operation::BeforePurge(const std::vector<uint64_t>& inodes) {
  WEIR_RETURN_IF_ERROR(Fetch(inodes));
  WEIR_RETURN_IF_ERROR(LoadState().status());
  for (const uint64_t inode : inodes) {
    Result<Inode> loaded = Load(inode);
    if (!loaded.ok() && loaded.code() == ErrorCode::kStale) continue;
    WEIR_RETURN_IF_ERROR(loaded.status());
    if (loaded->rec.nlink() > 0) continue;
    if (loaded->rec.charged_bytes() > 0) {
      WEIR_RETURN_IF_ERROR(HeldBy(*this, loaded->rec.charged_class()).status());
    }
    if (!loaded->rec.has_xattrs()) continue;
    const std::string xattrs = MakeKey(Table::kXattr, inode);
    WEIR_RETURN_IF_ERROR(txn.Scan(xattrs, PrefixEnd(xattrs), [](auto, auto) { return true; }));
  }
  txn.ReadFromDisk();
  return Status::Ok();
}

Status Operation::PurgeIfUnused(uint64_t inode, bool blank) {
  if (context.opens.IsOpen(inode)) return Status::Ok();
  Result<Inode> loaded = Load(inode);
  if (!loaded.ok()) return loaded.code() == ErrorCode::kStale ? Status::Ok() : loaded.status();
  if (loaded->rec.nlink() > 0) return Status::Ok();
  if (!IsNeeded(inode)) return Purge(*loaded, blank);
  if (loaded->rec.charged_bytes() == 0) return Status::Ok();
  // It was open when it lost its last name: see DropLastLink.
  WEIR_RETURN_IF_ERROR(DropCharge(*this, *loaded));
  loaded->rec.set_charged_bytes(0);
  Store(*loaded);
  return Status::Ok();
}

Status Operation::CutOff(const Inode& file, uint64_t size, uint32_t claimed_class,
                         uint64_t data_bytes) {
  WEIR_ASSIGN_OR_RETURN(const uint32_t charged, ChargedClass(*this, file, claimed_class));
  TruncateJob job{file.id, {}};
  *job.record.mutable_layout() = file.rec.layout();
  job.record.set_size(size);
  job.record.set_class_id(charged);
  job.record.set_data_bytes(data_bytes);
  job.record.set_version(file.rec.version());
  txn.PutRecord(MakeKey(Table::kTruncate, file.id), job.record);
  effects.truncate = std::move(job);
  return Status::Ok();
}

bool Operation::HasLooseEnd(const Inode& file) const {
  return file.rec.loose_end() || context.writers.MayHaveLooseEnd(file.rec);
}

void Operation::LooseEndIsCut(Inode* file) const {
  file->rec.set_loose_end(false);
  context.writers.ForgetLost(&file->rec);
}

Status Operation::CutLooseEnd(Inode* file, uint32_t claimed_class) {
  if (!HasLooseEnd(*file) || context.opens.IsWritten(file->id)) return Status::Ok();
  LooseEndIsCut(file);
  const uint64_t reach = file->Reach();
  file->DropBeyondEnd();
  CountReach(*file, reach);
  WEIR_RETURN_IF_ERROR(ChargeSize(*this, file, claimed_class));
  StoreQuietly(*file);
  return CutOff(*file, file->rec.size(), claimed_class, 0);
}

Status Operation::CheckHasHeard(uint64_t epoch) const {
  const bool repeats = context.replayed_inode != 0;
  if (repeats || !context.cluster.IsFenced(context.session, epoch)) return Status::Ok();
  return {ErrorCode::kStaleEpoch, "the mount was evicted and does not know it yet"};
}

void Operation::Opened(uint64_t inode, uint32_t flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (context.opens.IsOpenBy(context.session, inode)) {
    opened_before_ = context.opens.IsWrittenBy(context.session, inode);
  }
  context.opens.Open(context.session, inode, writes);
  effects.may_write = effects.may_write || writes;
  effects.opened_inode = inode;
  effects.open_flags = flags;
}

void Operation::TakeBack() {
  if (effects.opened_inode != 0) {
    context.opens.TakeBack(context.session, effects.opened_inode, opened_before_);
  }
  for (const uint64_t inode : looks) context.file_leases.Withdraw(context.session, inode);
}

void Operation::FillParent(const Inode& directory, wire::EntryReply* reply) {
  if (!txn.SeeOwnContents(MakeKey(Table::kInode, directory.id))) return;
  FillAttr(directory, reply->mutable_directory());
}

void Operation::FillParent(const Inode& directory, wire::TouchedReply* reply) {
  if (!txn.SeeOwnContents(MakeKey(Table::kInode, directory.id))) return;
  FillAttr(directory, reply->add_directories());
}

void Operation::FillAttr(const Inode& inode, wire::Attr* attr) {
  Judges(inode);
  const InodeRecord& rec = inode.rec;
  attr->set_inode(inode.id);
  attr->set_mode(rec.mode());
  attr->set_uid(rec.uid());
  attr->set_gid(rec.gid());
  attr->set_nlink(rec.nlink());
  attr->set_size(inode.IsDirectory() ? 4096 : rec.size());
  attr->set_atime_ns(rec.atime_ns());
  attr->set_mtime_ns(rec.mtime_ns());
  attr->set_ctime_ns(rec.ctime_ns());
  attr->set_btime_ns(rec.btime_ns());
  attr->set_rdev(rec.rdev());
  attr->set_version(rec.version());
  wire::Layout* layout = attr->mutable_layout();
  layout->set_stripe_unit(rec.layout().stripe_unit());
  layout->set_stripe_count(rec.layout().stripe_count());
  layout->set_object_size(rec.layout().object_size());
  layout->set_pool(rec.layout().pool());
  layout->set_tier(rec.layout().tier());
  attr->set_may_have_capability(inode.IsRegular() && MayHaveCapability(rec));
  attr->set_has_acl(!rec.acl_access().empty() || !rec.acl_default().empty());
  attr->set_allocated_end(rec.allocated_end());
  attr->set_blocks(inode.Blocks());
}

Status Operation::FillEntry(const Inode& inode, wire::EntryReply* reply) {
  context.lingering.Told(context.session, inode.id);
  FillAttr(inode, reply->mutable_attr());
  WEIR_ASSIGN_OR_RETURN(const ResolvedClass resolved, context.classes.Resolve(*this, inode));
  reply->mutable_effective_class()->set_class_id(resolved.id);
  reply->mutable_effective_class()->set_tagged(resolved.tagged);
  if (inode.IsRegular() && inode.rec.nlink() > 0) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t room, RoomBelow(*this, inode.rec.parent()));
    if (room != UINT64_MAX) reply->mutable_attr()->set_quota_room(room);
  }
  reply->set_sole_opener(!context.opens.OpenElsewhere(context.session, inode.id));
  return Status::Ok();
}

void Operation::Judges(const Inode& inode) {
  if (!inode.IsRegular()) return;
  if (shown.empty() || shown.back() != inode.id) shown.push_back(inode.id);
  AwaitWriters(inode);
}

Status Operation::TakeNames(const Inode& inode) {
  if (inode.rec.nlink() == 0) return Status::Ok();
  changed_directories.push_back(inode.rec.parent());
  if (inode.IsDirectory() || inode.rec.nlink() == 1) return Status::Ok();
  const std::string links = MakeKey(Table::kBackref, inode.id);
  return txn.Scan(links, PrefixEnd(links), [this](std::string_view key, auto) {
    changed_directories.push_back(ReadBigEndian(key, kSecondNumber));
    return true;
  });
}

void Operation::AwaitWriters(const Inode& inode) {
  if (inode.rec.writers().empty()) return;
  const auto missing = context.writers.AwaitedBy(context.session, inode.rec);
  awaited.insert(awaited.end(), missing.begin(), missing.end());
}

// A restart must know that there were leases.
Status Operation::RecordLeases() {
  if (context.leases.recorded()) return Status::Ok();
  WEIR_ASSIGN_OR_RETURN(StateRecord state, LoadState());
  state.set_leases_given(true);
  txn.PutRecord(kStateKey, state);
  context.leases.set_recorded(true);
  return Status::Ok();
}

Status Operation::OfferLease(const Inode& directory, wire::EntryReply* reply) {
  if (!directory.IsDirectory()) return Status::Ok();
  const auto grant = context.leases.TryGrant(context.session, directory.id);
  if (!grant.has_value()) return Status::Ok();
  WEIR_RETURN_IF_ERROR(RecordLeases());
  wire::DirLease* lease = reply->mutable_lease();
  lease->set_epoch(grant->epoch);
  lease->set_seq(grant->seq);
  lease->set_empty(directory.rec.entries() == 0);
  return Status::Ok();
}

// Not by an answer that will not be given.
Status Operation::OfferFileLease(uint64_t inode, wire::EntryReply* reply) {
  const bool concerns_files = !shown.empty() || !changed.empty() || !changed_directories.empty();
  if (!awaited.empty() || (context.awaits_holders && concerns_files)) return Status::Ok();
  const auto grant = context.file_leases.Offer(context.session, inode, context.opens);
  if (!grant.has_value()) return Status::Ok();
  if (grant->look) looks.push_back(inode);
  WEIR_RETURN_IF_ERROR(RecordLeases());
  wire::FileLease* lease = reply->mutable_file_lease();
  lease->set_epoch(grant->epoch);
  lease->set_seq(grant->seq);
  lease->set_write(grant->write);
  return Status::Ok();
}

Result<wire::EntryReply> Operation::LeasedEntry(const Inode& inode) {
  WEIR_ASSIGN_OR_RETURN(wire::EntryReply reply, Entry(inode));
  WEIR_RETURN_IF_ERROR(OfferFileLease(inode.id, &reply));
  return reply;
}

Result<wire::EntryReply> Operation::Entry(const Inode& inode) {
  wire::EntryReply reply;
  WEIR_RETURN_IF_ERROR(FillEntry(inode, &reply));
  return reply;
}

}  // namespace weir::mds
