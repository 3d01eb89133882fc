#include "client/data/file_reports.h"

#include <utility>

#include "client/takeover/takeover_log.h"
#include "common/base/after_all.h"

namespace weir::client {

Status LostError() {
  return {ErrorCode::kStale, "opened before this mount was evicted: others may have written since"};
}

void FileReports::Wrote(InodeId inode) {
  std::lock_guard lock(mutex_);
  NoteUnreportedLocked(inode);
}

void FileReports::NoteUnreportedLocked(InodeId inode) {
  if (!unreported_.try_emplace(inode, clock_.Now()).second) return;
  inodes_.Pin(inode);
  if (takeover_ != nullptr) takeover_->Dirty(inode);
}

bool FileReports::Hold(const InodePtr& inode, const HeldAttributes& change, uint32_t caller_uid,
                       ClassId class_id) {
  // A successor of this process tells of what was lost whoever has the file open, and nobody else.
  if (takeover_ != nullptr && !inode->has_writers()) return false;
  if (!leases_.BeginWrite(inode->id())) return false;
  // The kernels of others judge by the owner that they know, unless the MDS takes names from them.
  const bool gives_away = change.uid.has_value() || change.gid.has_value();
  bool held = false;
  if (!gives_away || leases_.IsUnseen(inode->id())) {
    // With the lock, for a report that ends now must find that there is more.
    std::lock_guard lock(mutex_);
    held = inode->Hold(change, caller_uid, class_id);
    if (held) {
      NoteUnreportedLocked(inode->id());
      holding_.insert(inode->id());
    }
  }
  leases_.EndWrite(inode->id());
  return held;
}

void FileReports::TellHeld(const InodePtr& inode, std::function<void()> then) {
  if (!inode->holds_attributes()) return then();
  Report(inode, inode->BeginAttributesReport(), false,
         [inode, then = std::move(then)](const Status& status) {
           if (!status.ok()) inode->RememberError(status);  // for the next fsync or close
           then();
         });
}

void FileReports::TellHeld(std::function<void()> then) {
  std::vector<InodePtr> holding;
  {
    std::lock_guard lock(mutex_);
    for (const InodeId id : holding_) {
      if (InodePtr inode = inodes_.Find(id)) holding.push_back(std::move(inode));
    }
  }
  if (holding.empty()) return then();
  const auto told = AfterAll(holding.size(), std::move(then));
  for (const InodePtr& inode : holding) TellHeld(inode, told);
}

void FileReports::Report(const InodePtr& inode, const Inode::Report& report, bool commit,
                         WriteCallback callback) {
  // In this order: under the map that tells of an eviction the MDS believes what it hears.
  const uint64_t epoch = reporter_.map_epoch();
  if (inode->IsLost(report)) return callback(LostError());
  {
    std::lock_guard lock(mutex_);
    const auto [under_way, first] = reporting_.try_emplace(inode->id());
    if (!first) {
      under_way->second.push_back([this, inode, report, commit, callback = std::move(callback)] {
        if (inode->Reported(report) && report.space.empty()) return callback(Status::Ok());
        Report(inode, report, commit, callback);
      });
      return;
    }
  }
  Inode::Report sent = inode->Sending(report);
  sent.epoch = epoch;
  reporter_.ReportWrote(
      inode->id(), sent, commit,
      [this, inode, report, callback = std::move(callback)](Result<FileAttr> attr) {
        const bool gone = attr.code() == ErrorCode::kNotFound || attr.code() == ErrorCode::kStale;
        if (attr.ok()) inode->EndReport(report, *attr);
        if (gone) inode->EndReport(report, inode->attr());
        if (!attr.ok() && !gone) inode->FailReport(report);
        Settle(inode);
        ReportEnded(inode->id());
        // It stays unreported until the map comes that tells of the eviction: LoseAll then.
        if (attr.code() == ErrorCode::kStaleEpoch) return callback(LostError());
        callback(gone ? Status::Ok() : attr.status());
      });
}

void FileReports::WhenReported(InodeId inode, std::function<void()> then) {
  {
    std::lock_guard lock(mutex_);
    if (const auto under_way = reporting_.find(inode); under_way != reporting_.end()) {
      // Those before it may begin another.
      under_way->second.push_back(
          [this, inode, then = std::move(then)] { WhenReported(inode, then); });
      return;
    }
  }
  then();
}

void FileReports::ReportEnded(InodeId inode) {
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard lock(mutex_);
    const auto ended = reporting_.extract(inode);
    waiting = std::move(ended.mapped());
  }
  for (const auto& report : waiting) report();
}

void FileReports::TellGrowth(const InodePtr& inode, uint64_t end, WriteCallback callback) {
  if (!leases_.alone() || end <= inode->told_size()) return callback(Status::Ok());
  {
    std::lock_guard lock(mutex_);
    const auto [waiting, first] = growing_.try_emplace(inode->id());
    waiting->second.push_back(std::move(callback));
    if (!first) return;
  }
  ReportGrowth(inode);
}

// One report tells for all who wait when it begins.
void FileReports::ReportGrowth(const InodePtr& inode) {
  std::vector<WriteCallback> waiting;
  {
    std::lock_guard lock(mutex_);
    waiting.swap(growing_[inode->id()]);
    if (waiting.empty()) growing_.erase(inode->id());
  }
  if (waiting.empty()) return;
  auto told = [this, inode, waiting = std::move(waiting)](const Status& status) {
    for (const WriteCallback& callback : waiting) callback(status);
    ReportGrowth(inode);
  };
  const auto report = inode->BeginReport();
  if (!report.has_value()) return told(Status::Ok());
  Report(inode, *report, true, std::move(told));
}

std::vector<InodePtr> FileReports::All() const {
  std::vector<InodePtr> all;
  std::lock_guard lock(mutex_);
  for (const auto& [id, since] : unreported_) {
    if (InodePtr inode = inodes_.Find(id)) all.push_back(std::move(inode));
  }
  return all;
}

std::vector<InodePtr> FileReports::TakeOld(Duration age) {
  std::vector<InodePtr> old;
  std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  for (auto& [id, since] : unreported_) {
    if (now - since < age) continue;
    since = now;  // not again while its report is on its way
    if (InodePtr inode = inodes_.Find(id)) old.push_back(std::move(inode));
  }
  return old;
}

void FileReports::Lose(const InodePtr& inode) {
  inode->LoseUnreported();
  Settle(inode);
}

void FileReports::Settle(const InodePtr& inode) {
  bool settled = false;
  ClosedFiles::Waiters closed;
  {
    std::lock_guard lock(mutex_);
    settled = !inode->has_unreported() && unreported_.erase(inode->id()) == 1;
    if (!inode->holds_attributes()) holding_.erase(inode->id());
    if (settled) NoteStoredLocked(*inode);
    if (settled) closed = closed_.Take(inode->id());
  }
  for (const auto& then : closed) then();
  if (settled) inodes_.Unpin(inode->id());
}

std::vector<ClosedFiles::Waiters> FileReports::LoseAll() {
  std::map<InodeId, TimePoint> lost;
  std::vector<ClosedFiles::Waiters> closed;
  {
    std::lock_guard lock(mutex_);
    lost.swap(unreported_);
    closed = closed_.TakeAll();
    holding_.clear();
  }
  for (const auto& [id, since] : lost) {
    if (const InodePtr inode = inodes_.Find(id)) {
      inode->LoseUnreported();
      inode->RememberError(LostError(), Inode::Hears::kAll);
    }
    inodes_.Unpin(id);
  }
  return closed;
}

void FileReports::ToldError(const Inode& inode) {
  std::lock_guard lock(mutex_);
  NoteStoredLocked(inode);
}

void FileReports::NoteStoredLocked(const Inode& inode) {
  if (takeover_ == nullptr || inode.has_error()) return;
  if (!unreported_.contains(inode.id())) takeover_->Clean(inode.id());
}

void FileReports::Closed(const Inode& inode) {
  std::lock_guard lock(mutex_);
  if (unreported_.contains(inode.id())) closed_.Add(inode);
}

void FileReports::WhenStored(InodeId inode, std::function<void()> then) {
  {
    std::lock_guard lock(mutex_);
    if (closed_.Wait(inode, &then)) return;
  }
  then();
}

bool FileReports::HasClosed(InodeId inode) const {
  std::lock_guard lock(mutex_);
  return closed_.Has(inode);
}

bool FileReports::HasClosed(const MadeName& name) const {
  std::lock_guard lock(mutex_);
  return closed_.AnyMayHave(name);
}

std::vector<InodeId> FileReports::ClosedWith(const MadeName& name) const {
  std::lock_guard lock(mutex_);
  return closed_.MayHave(name);
}

void FileReports::Renamed(const Inode& inode) {
  std::lock_guard lock(mutex_);
  if (closed_.Has(inode.id())) closed_.Add(inode);
}

}  // namespace weir::client
