#include "client/vfs/dir_cache.h"

#include <sys/stat.h>

#include <algorithm>

#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

// A little more than a rest lasts at the MDS (mds/ns/lease_rest.h).
constexpr Duration kWantInterval = std::chrono::milliseconds(150);
constexpr size_t kMostWanted = 4096;
constexpr size_t kNameMax = 255;

size_t HashOf(std::string_view name) {
  return std::hash<std::string_view>()(name);
}

size_t Index(DirCache::Kind kind) {
  return static_cast<size_t>(kind);
}

// As the MDS checks it; whoever is refused asks there.
bool MayPass(const FileAttr& directory, const wire::Caller& caller) {
  if (caller.uid() == 0 || caller.unknown()) return true;  // the kernel has judged
  if (directory.has_acl && caller.uid() != directory.uid) return false;
  uint32_t granted = directory.mode;
  if (caller.uid() == directory.uid) {
    granted = directory.mode >> 6;
  } else if (caller.gid() == directory.gid ||
             std::find(caller.groups().begin(), caller.groups().end(), directory.gid) !=
                 caller.groups().end()) {
    granted = directory.mode >> 3;
  }
  return (granted & 1) != 0;
}

}  // namespace

class DirCache::Asking {
 public:
  explicit Asking(DirCache& cache) : cache_(cache) {}
  ~Asking() { cache_.EndAsk(); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  InodeId parent;
  uint64_t parent_lease = 0;  // 0: none
  uint64_t at = 0;            // `sequence_` when it was sent

 private:
  DirCache& cache_;
};

class DirCache::Changing {
 public:
  explicit Changing(DirCache& cache) : cache_(cache) {}
  ~Changing() { cache_.EndChange(changes); }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

  std::vector<std::pair<Kind, InodeId>> changes;
  uint64_t at = 0;          // `sequence_` when it began
  uint64_t last_lease = 0;  // likewise

 private:
  DirCache& cache_;
};

void DirCache::BeginSession(uint64_t epoch, TimePoint asked) {
  const std::lock_guard lock(mutex_);
  ClearLocked();
  wanted_.clear();
  epoch_ = epoch;
  seq_ = 0;
  trusted_until_ = asked + kLeaseTrust;
}

void DirCache::BeginAlone() {
  const std::lock_guard lock(mutex_);
  epoch_ = 1;
  alone_ = true;
  trusted_until_ = TimePoint::Max();
}

void DirCache::Renew(uint64_t epoch, uint64_t seq, const std::vector<InodeId>& recalled,
                     TimePoint asked) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_ || epoch == 0) return;
  for (const InodeId directory : recalled) DropLocked(directory);
  seq_ = std::max(seq_, seq);
  trusted_until_ = std::max(trusted_until_, asked + kLeaseTrust);
}

uint64_t DirCache::obeyed() const {
  const std::lock_guard lock(mutex_);
  return seq_;
}

DirCache::Look DirCache::Find(InodeId parent, std::string_view name,
                              const wire::Caller& caller) const {
  // What no directory can have is for the MDS to refuse.
  if (epoch_ == 0 || name == "." || name == ".." || name.size() > kNameMax) return {};
  const std::lock_guard lock(mutex_);
  if (clock_.Now() >= trusted_until_) return {};
  const auto found = directories_.find(parent);
  if (found == directories_.end() || !MayPass(found->second.attr, caller)) return {};
  const Directory& directory = found->second;
  const auto child = directory.directories.find(std::string(name));
  if (child != directory.directories.end()) {
    // Its own lease covers the attributes that matter here.
    const auto leased = directories_.find(child->second);
    if (leased == directories_.end()) return {};
    return {Look::Kind::kDirectory, leased->second.attr, {}};
  }
  const auto other = directory.others.find(std::string(name));
  if (other != directory.others.end()) {
    return {Look::Kind::kOther, {}, other->second};
  }
  if (!directory.complete || directory.present.contains(HashOf(name))) return {};
  return {Look::Kind::kAbsent, {}, {}};
}

std::shared_ptr<DirCache::Asking> DirCache::Ask(InodeId parent) {
  if (epoch_ == 0) return nullptr;
  auto asking = std::make_shared<Asking>(*this);
  asking->parent = parent;
  const std::lock_guard lock(mutex_);
  ++asking_;
  asking->at = sequence_;
  const auto found = directories_.find(parent);
  if (found != directories_.end()) asking->parent_lease = found->second.lease;
  return asking;
}

void DirCache::EndAsk() {
  const std::lock_guard lock(mutex_);
  if (--asking_ > 0) return;
  std::erase_if(activity_, [](const auto& entry) {
    const auto& under_way = entry.second.under_way;
    return std::all_of(std::begin(under_way), std::end(under_way),
                       [](uint32_t count) { return count == 0; });
  });
}

bool DirCache::QuietLocked(InodeId directory, Kind kind, uint64_t since) const {
  const auto found = activity_.find(directory);
  if (found == activity_.end()) return true;
  const Activity& activity = found->second;
  return activity.under_way[Index(kind)] == 0 && activity.last[Index(kind)] <= since;
}

void DirCache::Learn(const Asking& asking, std::string_view name, const wire::EntryReply& reply) {
  const FileAttr attr = FromWire(reply.attr());
  const bool directory = S_ISDIR(attr.mode);
  if (directory && !reply.has_lease()) return;
  const std::lock_guard lock(mutex_);
  if (directory) {
    // A recall that came first may have been of this very lease.
    if (reply.lease().epoch() != epoch_ || reply.lease().seq() < seq_) return;
    if (!QuietLocked(attr.inode, Kind::kRights, asking.at)) return;
    TakeLeaseLocked(attr, reply.lease(), asking.at);
  } else if (alone_ || learned_ >= limits_.learned) {
    return;
  }
  const auto parent = directories_.find(asking.parent);
  if (parent == directories_.end() || parent->second.lease != asking.parent_lease) return;
  if (!QuietLocked(asking.parent, Kind::kRemove, asking.at)) return;
  auto& known = directory ? parent->second.directories : parent->second.others;
  const bool added = known.insert_or_assign(std::string(name), attr.inode).second;
  learned_ += added ? 1 : 0;
}

void DirCache::LearnMade(const Asking& asking, std::string_view name, wire::EntryReply reply) {
  reply.mutable_lease()->set_epoch(epoch_);
  reply.mutable_lease()->set_empty(true);
  Learn(asking, name, reply);
}

void DirCache::TakeLeaseLocked(const FileAttr& attr, const wire::DirLease& lease,
                               uint64_t asked_at) {
  if (!directories_.contains(attr.inode) &&
      (directories_.size() >= limits_.directories || learned_ >= limits_.learned ||
       present_ >= limits_.present)) {
    ClearLocked();
  }
  Directory& directory = directories_[attr.inode];
  if (directory.lease == 0) directory.lease = ++last_lease_;
  if (attr.version >= directory.attr.version) directory.attr = attr;
  if (!lease.empty() || !QuietLocked(attr.inode, Kind::kAdd, asked_at)) return;
  present_ -= directory.present.size();
  directory.present.clear();
  directory.complete = true;
}

bool DirCache::Wants(InodeId directory, bool lacks) {
  if (epoch_ == 0) return false;
  const std::lock_guard lock(mutex_);
  if (alone_) return false;
  if (!lacks && directories_.contains(directory)) return false;
  const TimePoint now = clock_.Now();
  const auto [wanted, first] = wanted_.try_emplace(directory, now);
  if (!first && now - wanted->second < kWantInterval) return false;
  wanted->second = now;
  if (wanted_.size() > kMostWanted) wanted_.clear();
  return true;
}

bool DirCache::NamesAreChanging(InodeId directory) const {
  const std::lock_guard lock(mutex_);
  const auto found = activity_.find(directory);
  if (found == activity_.end()) return false;
  const auto& under_way = found->second.under_way;
  return under_way[static_cast<size_t>(Kind::kAdd)] != 0 ||
         under_way[static_cast<size_t>(Kind::kRemove)] != 0;
}

bool DirCache::IsChanging(InodeId directory) const {
  const std::lock_guard lock(mutex_);
  const auto found = activity_.find(directory);
  if (found == activity_.end()) return false;
  const auto& under_way = found->second.under_way;
  return std::any_of(std::begin(under_way), std::end(under_way),
                     [](uint32_t count) { return count != 0; });
}

std::shared_ptr<DirCache::Changing> DirCache::BeginChange(std::initializer_list<Change> changes) {
  if (epoch_ == 0) return nullptr;
  auto changing = std::make_shared<Changing>(*this);
  const std::lock_guard lock(mutex_);
  for (const Change& change : changes) {
    changing->changes.emplace_back(change.kind, change.directory);
    Activity& activity = activity_[change.directory];
    ++activity.under_way[Index(change.kind)];
    activity.last[Index(change.kind)] = ++sequence_;
    NoteChangeLocked(change);
  }
  changing->at = sequence_;
  changing->last_lease = last_lease_;
  return changing;
}

void DirCache::NoteChangeLocked(const Change& change) {
  if (change.kind == Kind::kRights) return DropLocked(change.directory);
  const auto found = directories_.find(change.directory);
  if (found == directories_.end()) return;
  Directory& directory = found->second;
  if (change.kind == Kind::kRemove) {
    // Its name stays among those that are present: that says only that the MDS must be asked.
    const std::string name(change.name);
    learned_ -= directory.directories.erase(name) + directory.others.erase(name);
    return;
  }
  if (!directory.complete) return;
  if (present_ >= limits_.present) {
    present_ -= directory.present.size();
    directory.present.clear();
    directory.complete = false;
    return;
  }
  if (directory.present.insert(HashOf(change.name)).second) ++present_;
}

std::vector<InodeId> DirCache::DirectoriesOf(const Changing& changing) {
  std::vector<InodeId> directories;
  for (const auto& [kind, directory] : changing.changes) {
    if (std::find(directories.begin(), directories.end(), directory) == directories.end()) {
      directories.push_back(directory);
    }
  }
  return directories;
}

// No other change takes a name there, or has since that one began.
bool DirCache::AloneRemovesLocked(const Changing& changing, InodeId directory) const {
  const auto found = activity_.find(directory);
  if (found == activity_.end()) return false;
  const auto own = std::count(changing.changes.begin(), changing.changes.end(),
                              std::pair(Kind::kRemove, directory));
  const Activity& activity = found->second;
  return activity.under_way[Index(Kind::kRemove)] == static_cast<uint32_t>(own) &&
         activity.last[Index(Kind::kRemove)] <= changing.at;
}

void DirCache::LearnMoved(const Changing& changing, InodeId directory, std::string_view name,
                          InodeId file) {
  const std::lock_guard lock(mutex_);
  if (alone_ || learned_ >= limits_.learned) return;
  const auto found = directories_.find(directory);
  if (found == directories_.end() || found->second.lease > changing.last_lease) return;
  if (!AloneRemovesLocked(changing, directory)) return;
  const bool added = found->second.others.insert_or_assign(std::string(name), file).second;
  learned_ += added ? 1 : 0;
}

void DirCache::End(Changing* changing) {
  EndChange(std::exchange(changing->changes, {}));
}

void DirCache::EndChange(const std::vector<std::pair<Kind, InodeId>>& changes) {
  const std::lock_guard lock(mutex_);
  for (const auto& [kind, directory] : changes) {
    const auto found = activity_.find(directory);
    if (found == activity_.end()) continue;
    Activity& activity = found->second;
    --activity.under_way[Index(kind)];
    activity.last[Index(kind)] = ++sequence_;
    const bool idle = std::all_of(std::begin(activity.under_way), std::end(activity.under_way),
                                  [](uint32_t count) { return count == 0; });
    if (idle && asking_ == 0) activity_.erase(found);
  }
}

void DirCache::DropLocked(InodeId directory) {
  const auto found = directories_.find(directory);
  if (found == directories_.end()) return;
  const Directory& gone = found->second;
  present_ -= gone.present.size();
  learned_ -= gone.directories.size() + gone.others.size();
  directories_.erase(found);
}

void DirCache::ClearLocked() {
  directories_.clear();
  learned_ = present_ = 0;
}

}  // namespace weir::client
