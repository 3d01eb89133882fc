#include "client/vfs/file_leases.h"

#include <algorithm>
#include <utility>

#include "client/vfs/dir_cache.h"
#include "common/wire/mds.pb.h"

namespace weir::client {

std::vector<InodeId> FileLeases::BeginSession(uint64_t epoch, TimePoint asked) {
  std::vector<InodeId> written;
  const std::lock_guard lock(mutex_);
  floor_ = ++stamp_;
  no_lease_ = last_lease_;
  epoch_ = epoch;
  seq_ = 0;
  trusted_until_ = (asked + kLeaseTrust).ns;
  for (auto it = writing_.begin(); it != writing_.end();) {
    if (Forbid(&it->second)) written.push_back(it->first);
    it = it->second.IsOver() && it->second.quiet.empty() ? writing_.erase(it) : std::next(it);
  }
  return written;
}

void FileLeases::Renew(uint64_t epoch, uint64_t seq, TimePoint asked) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_ || epoch == 0) return;
  seq_ = std::max(seq_, seq);
  trusted_until_ = std::max(trusted_until_.load(), (asked + kLeaseTrust).ns);
}

uint64_t FileLeases::heard() const {
  const std::lock_guard lock(mutex_);
  return seq_;
}

uint64_t FileLeases::epoch() const {
  const std::lock_guard lock(mutex_);
  return epoch_;
}

void FileLeases::Learn(const InodePtr& inode, const wire::EntryReply& reply, uint64_t asked) {
  if (alone_) {
    const std::lock_guard lock(mutex_);
    if (asked >= floor_ && asked >= inode->changed_at()) inode->set_answerable(asked);
    return;
  }
  if (!reply.has_file_lease()) return;
  const wire::FileLease& lease = reply.file_lease();
  const std::lock_guard lock(mutex_);
  // A recall that came first may have been of this very lease.
  if (lease.epoch() != epoch_ || lease.seq() < seq_) return;
  if (asked < floor_) return;
  if (asked >= inode->changed_at()) inode->set_answerable(asked);
  if (inode->lease() <= no_lease_) inode->set_lease(++last_lease_);
  if (!lease.write()) return;
  Writing& writing = writing_[inode->id()];
  if (writing.releasing) return;
  writing.allowed = true;
  writing.unseen = writing.unseen || lease.unseen();
}

void FileLeases::Changed(Inode* inode) {
  const std::lock_guard lock(mutex_);
  inode->set_changed_at(++stamp_);
  inode->set_answerable(0);
}

void FileLeases::Changed() {
  const std::lock_guard lock(mutex_);
  floor_ = ++stamp_;
}

bool FileLeases::MayAnswer(const Inode& inode) const {
  const uint64_t stamp = inode.answerable();
  if (stamp == 0 || stamp < floor_) return false;
  return alone_ || clock_.Now().ns < trusted_until_;
}

uint64_t FileLeases::NamesOf(const Inode& directory) const {
  const uint64_t lease = directory.lease();
  return lease > no_lease_ && Trust() > Duration::zero() ? lease : 0;
}

Duration FileLeases::Trust() const {
  return std::max(TimePoint{trusted_until_} - clock_.Now(), Duration::zero());
}

bool FileLeases::BeginWrite(InodeId inode) {
  if (alone_) return true;
  const std::lock_guard lock(mutex_);
  const auto found = writing_.find(inode);
  if (found == writing_.end() || !found->second.allowed) return false;
  ++found->second.under_way;
  return true;
}

void FileLeases::EndWrite(InodeId inode) {
  if (alone_) return;
  std::vector<std::function<void()>> quiet;
  {
    const std::lock_guard lock(mutex_);
    const auto found = writing_.find(inode);
    if (found == writing_.end() || --found->second.under_way > 0) return;
    quiet.swap(found->second.quiet);
    if (found->second.IsOver()) writing_.erase(found);
  }
  for (const auto& run : quiet) run();
}

bool FileLeases::IsUnseen(InodeId inode) const {
  const std::lock_guard lock(mutex_);
  const auto found = writing_.find(inode);
  return found != writing_.end() && found->second.unseen;
}

bool FileLeases::Revoke(const InodePtr& inode) {
  const std::lock_guard lock(mutex_);
  inode->Distrust();
  return StopWritingLocked(inode->id());
}

void FileLeases::BeginRelease(InodeId inode) {
  const std::lock_guard lock(mutex_);
  Writing& writing = writing_[inode];
  Forbid(&writing);
  writing.releasing = true;
}

void FileLeases::EndRelease(InodeId inode) {
  const std::lock_guard lock(mutex_);
  const auto found = writing_.find(inode);
  if (found == writing_.end()) return;
  found->second.releasing = false;
  if (found->second.IsOver()) writing_.erase(found);
}

bool FileLeases::Forbid(Writing* writing) {
  writing->unseen = false;
  return std::exchange(writing->allowed, false);
}

bool FileLeases::StopWritingLocked(InodeId inode) {
  const auto found = writing_.find(inode);
  if (found == writing_.end()) return false;
  const bool allowed = Forbid(&found->second);
  if (found->second.IsOver()) writing_.erase(found);
  return allowed;
}

void FileLeases::WhenQuiet(InodeId inode, std::function<void()> quiet) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = writing_.find(inode);
    if (found != writing_.end() && found->second.under_way > 0) {
      found->second.quiet.push_back(std::move(quiet));
      return;
    }
  }
  quiet();
}

}  // namespace weir::client
