#include "mds/ns/usage.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "mds/ns/operation.h"

namespace weir::mds {
namespace {

bool HasQuota(const InodeRecord& directory) {
  return directory.quota_bytes() > 0 || directory.quota_files() > 0;
}

std::string UntoldKey(uint64_t directory) {
  return MakeKey(Table::kUntold, directory);
}

TreeUsage Untold(const InodeRecord& directory) {
  TreeUsage untold = directory.below();
  AddUsage(directory.told(), -1, &untold);
  return untold;
}

bool Exceeds(uint64_t used, uint64_t quota) {
  return quota > 0 && used > quota;
}

// kQuota when `change` takes a directory beyond its limits.
Status CheckQuota(const Inode& directory, const TreeUsage& change) {
  const InodeRecord& rec = directory.rec;
  if (change.bytes() > 0 &&
      Exceeds(static_cast<uint64_t>(rec.below().bytes()), rec.quota_bytes())) {
    return InodeError(ErrorCode::kQuota, directory.id,
                      "may hold " + FormatSize(rec.quota_bytes()) +
                          ": remove something, or raise " + std::string(kQuotaBytes));
  }
  const bool more = change.files() > 0 || change.directories() > 0;
  if (more && Exceeds(EntriesOf(rec.below()), rec.quota_files())) {
    return InodeError(ErrorCode::kQuota, directory.id,
                      "may hold " + std::to_string(rec.quota_files()) +
                          " entries: remove something, or raise " + std::string(kQuotaFiles));
  }
  return Status::Ok();
}

Result<bool> QuotaAbove(Operation& op, const Inode& directory) {
  WEIR_ASSIGN_OR_RETURN(const uint64_t quotas, op.QuotaCount());
  if (quotas == 0) return false;
  Inode at = directory;
  while (at.id != kRootInode.value) {
    WEIR_ASSIGN_OR_RETURN(at, op.LoadParent(at.rec.parent()));
    if (HasQuota(at.rec)) return true;
  }
  return false;
}

Status LearnUntold(Operation& op) {
  if (op.context.untold.known()) return Status::Ok();
  std::set<uint64_t> untold;
  const std::string prefix = MakeKey(Table::kUntold);
  WEIR_RETURN_IF_ERROR(op.txn.Scan(prefix, PrefixEnd(prefix), [&](std::string_view key, auto) {
    untold.insert(ReadBigEndian(key, kFirstNumber));
    return true;
  }));
  op.context.untold.Learn(std::move(untold));
  return Status::Ok();
}

}  // namespace

TreeUsage ShareOf(const InodeRecord& inode) {
  TreeUsage share;
  if (S_ISDIR(inode.mode())) {
    share = inode.told();
    share.set_directories(share.directories() + 1);
  } else {
    share.set_files(1);
    if (S_ISREG(inode.mode())) {
      share.set_bytes(static_cast<int64_t>(std::max(inode.size(), inode.allocated_end())));
    }
  }
  return share;
}

void AddUsage(const TreeUsage& more, int64_t times, TreeUsage* to) {
  to->set_bytes(to->bytes() + times * more.bytes());
  to->set_files(to->files() + times * more.files());
  to->set_directories(to->directories() + times * more.directories());
}

bool IsZero(const TreeUsage& usage) {
  return usage.bytes() == 0 && usage.files() == 0 && usage.directories() == 0;
}

uint64_t EntriesOf(const TreeUsage& usage) {
  return static_cast<uint64_t>(usage.files() + usage.directories());
}

Status TellUpwards(Operation& op, uint64_t directory) {
  WEIR_ASSIGN_OR_RETURN(Inode at, op.Load(directory));
  while (at.id != kRootInode.value) {
    const TreeUsage untold = Untold(at.rec);
    op.txn.Delete(UntoldKey(at.id));
    if (IsZero(untold)) return Status::Ok();
    *at.rec.mutable_told() = at.rec.below();
    op.StoreContents(at);
    if (at.rec.nlink() == 0) return Status::Ok();
    WEIR_ASSIGN_OR_RETURN(at, op.Load(at.rec.parent()));
    AddUsage(untold, 1, at.rec.mutable_below());
    op.StoreContents(at);
  }
  return Status::Ok();
}

Result<bool> TellSome(Operation& op, size_t limit) {
  WEIR_RETURN_IF_ERROR(LearnUntold(op));
  const std::set<uint64_t>& all = op.context.untold.all();
  const auto last = std::next(all.begin(), static_cast<int64_t>(std::min(limit, all.size())));
  WEIR_RETURN_IF_ERROR(op.Fetch({all.begin(), last}));
  size_t told = 0;
  for (const uint64_t directory : all) {
    if (told++ == limit) return true;
    WEIR_RETURN_IF_ERROR(TellUpwards(op, directory));
  }
  return false;
}

Status TellAll(Operation& op) {
  return TellSome(op, SIZE_MAX).status();
}

Status Operation::SettleUsage() {
  if (usage_.empty()) return Status::Ok();
  // What a quota admits or refuses depends on what others have there.
  WEIR_ASSIGN_OR_RETURN(const uint64_t quotas, QuotaCount());
  for (const auto& [directory, change] : std::exchange(usage_, {})) {
    if (IsZero(change)) continue;
    WEIR_ASSIGN_OR_RETURN(Inode at, quotas > 0 ? Load(directory) : LoadParent(directory));
    AddUsage(change, 1, at.rec.mutable_below());
    StoreContents(at);
    if (quotas_bind) WEIR_RETURN_IF_ERROR(CheckQuota(at, change));
    if (at.id == kRootInode.value) continue;
    WEIR_ASSIGN_OR_RETURN(const bool exact, QuotaAbove(*this, at));
    if (!exact) {
      WEIR_ASSIGN_OR_RETURN(const Overlay::Value known, txn.GetUnshown(UntoldKey(at.id)));
      if (!known.has_value()) txn.Put(UntoldKey(at.id), "");
      continue;
    }
    WEIR_RETURN_IF_ERROR(TellUpwards(*this, at.id));
    while (at.id != kRootInode.value) {
      WEIR_ASSIGN_OR_RETURN(at, Load(at.rec.parent()));
      if (quotas_bind) WEIR_RETURN_IF_ERROR(CheckQuota(at, change));
    }
  }
  return Status::Ok();
}

void Operation::Count(uint64_t directory, const TreeUsage& share, int64_t times) {
  AddUsage(share, times, &usage_[directory]);
}

void Operation::CountReach(const Inode& file, uint64_t before) {
  if (file.rec.nlink() == 0) return;
  TreeUsage grown;
  grown.set_bytes(static_cast<int64_t>(file.Reach() - before));
  Count(file.rec.parent(), grown, 1);
}

Result<uint64_t> Operation::QuotaCount() {
  WEIR_ASSIGN_OR_RETURN(const StateRecord state, LoadState());
  return state.quota_count();
}

Status Operation::AddQuotaCount(int64_t more) {
  WEIR_ASSIGN_OR_RETURN(StateRecord state, LoadState());
  state.set_quota_count(state.quota_count() + static_cast<uint64_t>(more));
  txn.PutRecord(kStateKey, state);
  return Status::Ok();
}

Result<uint64_t> RoomBelow(Operation& op, uint64_t directory) {
  WEIR_ASSIGN_OR_RETURN(const uint64_t quotas, op.QuotaCount());
  uint64_t room = UINT64_MAX;
  if (quotas == 0) return room;
  WEIR_ASSIGN_OR_RETURN(Inode at, op.Load(directory));
  while (true) {
    const auto used = static_cast<uint64_t>(at.rec.below().bytes());
    const uint64_t quota = at.rec.quota_bytes();
    if (quota > 0) room = std::min(room, quota - std::min(quota, used));
    if (at.id == kRootInode.value) return room;
    WEIR_ASSIGN_OR_RETURN(at, op.Load(at.rec.parent()));
  }
}

Status SetQuota(Operation& op, std::string_view name, std::string_view value, Inode* directory) {
  if (!directory->IsDirectory()) {
    return InodeError(ErrorCode::kInvalid, directory->id, "is no directory: it has no quota");
  }
  WEIR_ASSIGN_OR_RETURN(const uint64_t limit, ParseSize(value));
  const bool had = HasQuota(directory->rec);
  if (name == kQuotaBytes) {
    directory->rec.set_quota_bytes(limit);
  } else {
    directory->rec.set_quota_files(limit);
  }
  const bool has = HasQuota(directory->rec);
  if (had == has) return Status::Ok();
  WEIR_RETURN_IF_ERROR(op.AddQuotaCount(has ? 1 : -1));
  if (!has) return Status::Ok();
  // From here on it is exact; what was told late until now comes in first.
  const Inode changed = *directory;
  WEIR_RETURN_IF_ERROR(TellAll(op));
  WEIR_ASSIGN_OR_RETURN(*directory, op.Load(changed.id));
  directory->rec.set_quota_bytes(changed.rec.quota_bytes());
  directory->rec.set_quota_files(changed.rec.quota_files());
  return Status::Ok();
}

Result<std::string> GetQuota(const Inode& directory, std::string_view name) {
  const uint64_t limit =
      name == kQuotaBytes ? directory.rec.quota_bytes() : directory.rec.quota_files();
  if (limit == 0) return Status(ErrorCode::kNoData);
  return std::to_string(limit);
}

Result<std::string> DescribeUsage(Operation& op, uint64_t directory) {
  op.effects.shows_counts = true;
  WEIR_RETURN_IF_ERROR(TellAll(op));
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(directory));
  if (!inode.IsDirectory()) return Status(ErrorCode::kNoData);
  const TreeUsage& below = inode.rec.below();
  return "bytes=" + std::to_string(below.bytes()) + " files=" + std::to_string(below.files()) +
         " directories=" + std::to_string(below.directories()) +
         " entries=" + std::to_string(EntriesOf(below));
}

}  // namespace weir::mds
