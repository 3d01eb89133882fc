#include "client/vfs/inode_table.h"

#include <algorithm>
#include <utility>

#include "common/base/buffer.h"
#include "common/posix/file_times.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {
constexpr int64_t kHeardWithin = 1'000'000'000;

uint64_t BlocksUpTo(uint64_t bytes) {
  return (bytes + kBlockSize - 1) / kBlockSize * (kBlockSize / 512);
}
}  // namespace

SpaceChange& SpaceChange::operator+=(const SpaceChange& other) {
  wrote += other.wrote;
  freed += other.freed;
  return *this;
}

SpaceChange& SpaceChange::operator-=(const SpaceChange& other) {
  wrote -= other.wrote;
  freed -= other.freed;
  return *this;
}

FileAttr Inode::MergedLocked() const {
  FileAttr merged = attr_;
  // The MDS was told how long ago it was, and counts from when it heard: that is not another read,
  // unless somebody has set the time to now, which sets ctime to the same.
  const int64_t mine = read_at_ns_ != 0 ? read_at_ns_ : told_read_ns_;
  const bool heard_late = mine != 0 && merged.ctime_ns != merged.atime_ns &&
                          merged.atime_ns > mine && merged.atime_ns - mine < kHeardWithin;
  if (heard_late) merged.atime_ns = mine;
  if (read_at_ns_ != 0) merged.atime_ns = std::max(merged.atime_ns, read_at_ns_);
  if (written_ != reported_) LayWrittenOver(&merged);
  telling_held_.ApplyTo(&merged);
  held_.ApplyTo(&merged);
  if (read_at_ns_ != 0) merged.atime_ns = std::max(merged.atime_ns, read_at_ns_);
  return merged;
}

void Inode::LayWrittenOver(FileAttr* attr) const {
  attr->size = std::max(attr->size, local_end_);
  const uint64_t most = attr->blocks + (untold_.wrote + telling_.wrote) / 512;
  const uint64_t freed = (untold_.freed + telling_.freed) / 512;
  attr->blocks =
      std::min(BlocksUpTo(std::max(attr->size, attr->allocated_end)), most - std::min(most, freed));
  if (local_lost_.set_ids) {
    attr->mode &= ~static_cast<uint32_t>(S_ISUID);
    if ((attr->mode & S_IXGRP) != 0) attr->mode &= ~static_cast<uint32_t>(S_ISGID);
  }
  if (local_mtime_ns_ == 0) return;
  attr->mtime_ns =
      MtimeAfterWrite({attr->atime_ns, attr->mtime_ns, attr->ctime_ns}, local_mtime_ns_);
  attr->ctime_ns = std::max(attr->ctime_ns, attr->mtime_ns);
}

FileAttr Inode::Update(const FileAttr& from_mds) {
  std::lock_guard lock(mutex_);
  // Replies overtake each other: an older version never replaces a newer one.
  if (from_mds.version >= attr_.version) {
    if (from_mds.version != attr_.version) generation_.fetch_add(1, std::memory_order_acq_rel);
    attr_ = from_mds;
  }
  return MergedLocked();
}

FileAttr Inode::attr() const {
  std::lock_guard lock(mutex_);
  return MergedLocked();
}

uint64_t Inode::size() const {
  std::lock_guard lock(mutex_);
  return written_ == reported_ ? attr_.size : std::max(attr_.size, local_end_);
}

FileLayout Inode::layout() const {
  std::lock_guard lock(mutex_);
  return attr_.layout;
}

bool Inode::QuotaAllows(uint64_t end) const {
  std::lock_guard lock(mutex_);
  const uint64_t counted = std::max(attr_.size, attr_.allocated_end);
  return end <= counted || end - counted <= attr_.quota_room;
}

bool Inode::has_quota() const {
  std::lock_guard lock(mutex_);
  return attr_.quota_room != UINT64_MAX;
}

bool Inode::MayLose(const RightsLost& lost) const {
  std::lock_guard lock(mutex_);
  return MayLoseLocked(lost);
}

bool Inode::MayLoseLocked(const RightsLost& lost) const {
  return (lost.set_ids && (attr_.mode & (S_ISUID | S_ISGID)) != 0) ||
         (lost.capability && attr_.may_have_capability);
}

bool Inode::Loses(const RightsLost& lost, const wire::Caller& caller) const {
  std::lock_guard lock(mutex_);
  if (lost.capability && attr_.may_have_capability) return true;
  if (!lost.set_ids || (attr_.mode & (S_ISUID | S_ISGID)) == 0) return false;
  if ((attr_.mode & (S_ISUID | S_IXGRP)) != 0) return true;
  const auto& groups = caller.groups();
  const bool his = caller.gid() == attr_.gid ||
                   std::find(groups.begin(), groups.end(), attr_.gid) != groups.end();
  return !his;
}

bool Inode::Hold(const HeldAttributes& change, uint32_t caller_uid, ClassId class_id) {
  std::lock_guard lock(mutex_);
  if (!MayHold(MergedLocked(), change, caller_uid)) return false;
  if (!HasUnreportedLocked()) local_class_ = class_id;
  if (written_ == reported_) reported_ = ++written_;  // what was lost before is another matter
  if (change.mtime_ns.has_value()) {
    local_mtime_ns_ = 0;  // of what was written before
    time_set_ = written_;
  }
  held_.Take(change);
  return true;
}

bool Inode::holds_attributes() const {
  std::lock_guard lock(mutex_);
  return !held_.empty() || !telling_held_.empty();
}

void Inode::Wrote(uint64_t end, int64_t mtime_ns, const RightsLost& lost, ClassId class_id,
                  const SpaceChange& space) {
  std::lock_guard lock(mutex_);
  if (written_ == reported_) {
    local_end_ = 0;
    local_mtime_ns_ = 0;
    local_lost_ = {};
  }
  ++written_;
  local_end_ = std::max(local_end_, end);
  local_mtime_ns_ = std::max(local_mtime_ns_, mtime_ns);
  local_lost_.set_ids |= lost.set_ids;
  local_lost_.capability |= lost.capability;
  local_class_ = class_id;
  untold_ += space;
  held_.mtime_ns.reset();
  telling_held_.mtime_ns.reset();
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void Inode::Made(MadeName name) {
  std::lock_guard lock(mutex_);
  made_name_ = std::move(name);
}

std::optional<MadeName> Inode::made_name() const {
  std::lock_guard lock(mutex_);
  return made_name_;
}

void Inode::Resized(const FileAttr& from_mds) {
  std::lock_guard lock(mutex_);
  if (from_mds.size == 0 && attr_.size > 0) emptied_ = true;
  if (from_mds.version >= attr_.version) attr_ = from_mds;
  reported_ = written_;
  allowed_end_ = 0;
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

uint64_t Inode::told_size() const {
  std::lock_guard lock(mutex_);
  return attr_.size;
}

uint64_t Inode::allowed_end() const {
  std::lock_guard lock(mutex_);
  return std::max({attr_.size, attr_.allocated_end, allowed_end_});
}

void Inode::Allow(uint64_t end) {
  std::lock_guard lock(mutex_);
  allowed_end_ = std::max(allowed_end_, end);
}

void Inode::ForgetAllowed() {
  std::lock_guard lock(mutex_);
  allowed_end_ = 0;
}

std::optional<Inode::Report> Inode::BeginReport() {
  std::lock_guard lock(mutex_);
  if (written_ == reported_) {
    if (!HasUnreportedLocked()) return std::nullopt;
    return AttributesReportLocked();
  }
  const SpaceChange space = std::exchange(untold_, {});
  telling_ += space;
  Report report{written_, local_end_, local_mtime_ns_, local_lost_, local_class_};
  report.space = space;
  return report;
}

Inode::Report Inode::BeginAttributesReport() const {
  std::lock_guard lock(mutex_);
  return AttributesReportLocked();
}

Inode::Report Inode::AttributesReportLocked() const {
  Report report;
  report.sequence = written_;
  report.class_id = local_class_;
  report.attributes_only = true;
  return report;
}

Inode::Report Inode::Sending(Report report) {
  std::lock_guard lock(mutex_);
  if (report.sequence <= time_set_) report.mtime_ns = 0;
  report.held = telling_held_ = std::exchange(held_, {});
  return report;
}

void Inode::FailReport(const Report& report) {
  std::lock_guard lock(mutex_);
  telling_ -= report.space;
  untold_ += report.space;
  HeldAttributes again = std::exchange(telling_held_, {});
  again.Take(held_);
  held_ = again;
}

bool Inode::Reported(const Report& report) const {
  std::lock_guard lock(mutex_);
  if (!held_.empty() || !telling_held_.empty()) return false;
  return report.attributes_only || reported_ >= report.sequence;
}

FileAttr Inode::EndReport(const Report& report, const FileAttr& from_mds) {
  std::lock_guard lock(mutex_);
  if (!report.attributes_only) reported_ = std::max(reported_, report.sequence);
  if (!report.attributes_only && reported_ == written_) {
    emptied_ = false;
    made_name_.reset();
  }
  telling_ -= report.space;
  telling_held_ = {};
  if (from_mds.version >= attr_.version) {
    // One step means that only this mount wrote; the kernel's pages of it are still right.
    kept_version_ = from_mds.version == kept_version_ + 1 ? from_mds.version : 0;
    attr_ = from_mds;
  }
  return MergedLocked();
}

bool Inode::has_unreported() const {
  std::lock_guard lock(mutex_);
  return HasUnreportedLocked();
}

bool Inode::owes_only_times() const {
  std::lock_guard lock(mutex_);
  if (!held_.only_times() || !telling_held_.only_times()) return false;
  if (!untold_.empty() || !telling_.empty()) return false;
  if (written_ == reported_) return true;
  return local_end_ <= attr_.size && !MayLoseLocked(local_lost_);
}

bool Inode::HasUnreportedLocked() const {
  return written_ != reported_ || !held_.empty() || !telling_held_.empty();
}

bool Inode::ReadCounts(int64_t now_ns, bool strict) const {
  std::lock_guard lock(mutex_);
  if (attr_.mode == 0) return false;  // nothing is known of it
  if (strict) return true;
  const FileAttr now = MergedLocked();
  return ReadMovesAtime({now.atime_ns, now.mtime_ns, now.ctime_ns}, now_ns);
}

void Inode::WasRead(int64_t now_ns) {
  std::lock_guard lock(mutex_);
  read_at_ns_ = now_ns;
}

int64_t Inode::read_at() const {
  std::lock_guard lock(mutex_);
  return read_at_ns_;
}

void Inode::ToldRead(int64_t at_ns) {
  std::lock_guard lock(mutex_);
  if (read_at_ns_ != at_ns) return;
  attr_.atime_ns = std::max(attr_.atime_ns, at_ns);
  told_read_ns_ = at_ns;
  read_at_ns_ = 0;
}

void Inode::ForgetRead() {
  std::lock_guard lock(mutex_);
  read_at_ns_ = told_read_ns_ = 0;
}

void Inode::LoseUnreported() {
  std::lock_guard lock(mutex_);
  reported_ = lost_ = written_;
  held_ = telling_held_ = {};
}

bool Inode::IsLost(const Report& report) const {
  std::lock_guard lock(mutex_);
  return report.sequence <= lost_;
}

std::string Inode::target() const {
  std::lock_guard lock(mutex_);
  return target_;
}

void Inode::set_target(std::string target) {
  std::lock_guard lock(mutex_);
  target_ = std::move(target);
}

bool Inode::SeenAtOpen(uint64_t version) {
  std::lock_guard lock(mutex_);
  const bool same = kept_version_ == version && version != 0;
  kept_version_ = version;
  return same;
}

void Inode::RememberError(const Status& status, Hears hears) {
  std::lock_guard lock(mutex_);
  if (errors_ <= errors_heard_) error_ = status;
  if (hears == Hears::kAll && errors_of_all_ <= errors_heard_) error_of_all_ = status;
  ++errors_;
  if (hears == Hears::kAll) errors_of_all_ = errors_;
}

uint64_t Inode::ErrorMark() const {
  std::lock_guard lock(mutex_);
  return errors_heard_;
}

uint64_t Inode::errors(Hears handle) const {
  std::lock_guard lock(mutex_);
  return handle == Hears::kAll ? errors_of_all_ : errors_;
}

bool Inode::has_error() const {
  std::lock_guard lock(mutex_);
  return errors_of_all_ > errors_heard_;
}

void Inode::NotHeard(const Status& status) {
  std::lock_guard lock(mutex_);
  if (errors_of_all_ == 0) {
    error_ = error_of_all_ = status;
    errors_of_all_ = ++errors_;
  }
  errors_heard_ = std::min(errors_heard_, errors_of_all_ - 1);
}

Status Inode::TakeError(std::atomic<uint64_t>* mark, Hears handle) {
  std::lock_guard lock(mutex_);
  const uint64_t last = handle == Hears::kAll ? errors_of_all_ : errors_;
  if (*mark >= last) return Status::Ok();
  *mark = last;
  errors_heard_ = std::max(errors_heard_, last);
  return handle == Hears::kAll ? error_of_all_ : error_;
}

InodeTable::Entry& InodeTable::EntryLocked(InodeId id) {
  Entry& entry = entries_[id];
  if (entry.inode == nullptr) entry.inode = std::make_shared<Inode>(id);
  return entry;
}

InodePtr InodeTable::Lookup(InodeId id) {
  std::lock_guard lock(mutex_);
  Entry& entry = EntryLocked(id);
  ++entry.lookups;
  return entry.inode;
}

InodePtr InodeTable::LookupKnown(InodeId id) {
  std::lock_guard lock(mutex_);
  auto it = entries_.find(id);
  if (it == entries_.end()) return nullptr;
  ++it->second.lookups;
  return it->second.inode;
}

void InodeTable::Forget(InodeId id, uint64_t count) {
  InodePtr forgotten;
  {
    std::lock_guard lock(mutex_);
    auto it = entries_.find(id);
    if (it == entries_.end()) return;
    it->second.lookups -= std::min(it->second.lookups, count);
    const bool tells = it->second.lookups == 0 && std::exchange(it->second.watched, false);
    if (tells) forgotten = it->second.inode;
    DropIfUnusedLocked(id);
  }
  if (forgotten != nullptr) on_forgotten_(forgotten);
}

bool InodeTable::Watch(InodeId id) {
  std::lock_guard lock(mutex_);
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.lookups == 0) return false;
  it->second.watched = true;
  return true;
}

InodePtr InodeTable::Find(InodeId id) const {
  std::lock_guard lock(mutex_);
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : it->second.inode;
}

FileAttr InodeTable::Update(const InodePtr& inode, const FileAttr& from_mds) {
  const FileAttr shown = inode->Update(from_mds);
  if (!S_ISDIR(shown.mode) || inode->BeListed()) return shown;
  std::lock_guard lock(mutex_);
  // What has left the table may be back as another.
  const auto it = entries_.find(inode->id());
  if (it != entries_.end() && it->second.inode == inode) directories_.insert(inode->id());
  return shown;
}

std::vector<InodeId> InodeTable::Directories(size_t most) const {
  std::vector<InodeId> directories;
  std::lock_guard lock(mutex_);
  directories.reserve(std::min(most, directories_.size()));
  for (const InodeId id : directories_) {
    if (directories.size() == most) break;
    directories.push_back(id);
  }
  return directories;
}

InodePtr InodeTable::Pin(InodeId id) {
  std::lock_guard lock(mutex_);
  Entry& entry = EntryLocked(id);
  ++entry.pins;
  return entry.inode;
}

void InodeTable::Unpin(InodeId id) {
  std::lock_guard lock(mutex_);
  auto it = entries_.find(id);
  WEIR_CHECK(it != entries_.end() && it->second.pins > 0, "unpinned an inode that is not pinned");
  --it->second.pins;
  DropIfUnusedLocked(id);
}

void InodeTable::DropIfUnusedLocked(InodeId id) {
  auto it = entries_.find(id);
  if (it->second.lookups > 0 || it->second.pins > 0) return;
  directories_.erase(id);
  entries_.erase(it);
}

size_t InodeTable::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace weir::client
