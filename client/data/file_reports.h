// FileReports: what the MDS has yet to hear of files that were written or whose attributes were set
// here, and the reports (MDS_WROTE) by which it does.
//
// A file with something unreported is pinned, and known to a successor of this process
// (takeover_log.h), until all of it is reported or lost. Whether its data is stored the caller of
// Report knows. One report of a file is on its way at a time, in the order of the calls: late, an
// older one would undo a truncation that was answered before it. Attributes that are held go with
// whatever report is sent next, or alone when somebody depends on them (TellHeld). A file that was
// closed while it was here can be waited for (closed_files.h).
//
// Threads: any; callbacks with no lock held, on RPC threads or before the call returns. Errors:
// those of WriteReporter::ReportWrote; LostError for what was lost with the session. That a file is
// gone is no error: nobody misses the report.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "client/data/closed_files.h"
#include "client/data/write_reporter.h"
#include "client/vfs/file_leases.h"
#include "client/vfs/inode_table.h"
#include "common/base/time.h"

namespace weir::client {

class TakeoverLog;

// What changes of a file get that was opened before the mount was evicted.
Status LostError();

class FileReports {
 public:
  // All outlive it. `takeover` may be null.
  FileReports(Clock& clock, InodeTable& inodes, FileLeases& leases, WriteReporter& reporter,
              TakeoverLog* takeover)
      : clock_(clock), inodes_(inodes), leases_(leases), reporter_(reporter), takeover_(takeover) {}

  // Data of it was written (Inode::Wrote).
  void Wrote(InodeId inode);
  // Sets attributes here. False: the MDS is to be asked.
  bool Hold(const InodePtr& inode, const HeldAttributes& change, uint32_t caller_uid,
            ClassId class_id);
  // `then` when the MDS knows of all that were set before, of that file or of all.
  void TellHeld(const InodePtr& inode, std::function<void()> then);
  void TellHeld(std::function<void()> then);

  // `report` began before the flush that has ended now (Inode::BeginReport).
  void Report(const InodePtr& inode, const Inode::Report& report, bool commit,
              WriteCallback callback);
  // `then` when no report of the file is on its way: for what must not overtake one.
  void WhenReported(InodeId inode, std::function<void()> then);
  // `callback` when the MDS knows the size of what was written up to `end`: where the disks and it
  // are this process's, the kernel takes what was answered for durable, and says nothing of
  // sync(2).
  void TellGrowth(const InodePtr& inode, uint64_t end, WriteCallback callback);
  // With something unreported: all; those that have had it for so long, each once in that time.
  [[nodiscard]] std::vector<InodePtr> All() const;
  [[nodiscard]] std::vector<InodePtr> TakeOld(Duration age);

  // What is unreported of it shall not be reported any more.
  void Lose(const InodePtr& inode);
  // The same of all files, as the session was evicted: their users hear of it by an error. Whoever
  // waited for closed ones is the caller's to run.
  [[nodiscard]] std::vector<ClosedFiles::Waiters> LoseAll();
  // An error of an earlier write-back was told: a successor need not tell it.
  void ToldError(const Inode& inode);

  // It was closed: it is among the closed files if something of it is unreported.
  void Closed(const Inode& inode);
  // Of closed files. `then`, at once or later, when that one is none any more.
  void WhenStored(InodeId inode, std::function<void()> then);
  [[nodiscard]] bool HasClosed(InodeId inode) const;
  // Whether one has or may have that name, and which.
  [[nodiscard]] bool HasClosed(const MadeName& name) const;
  [[nodiscard]] std::vector<InodeId> ClosedWith(const MadeName& name) const;
  // What was made here has another name (Inode::Made).
  void Renamed(const Inode& inode);

 private:
  void NoteUnreportedLocked(InodeId inode);
  // All of it is stored and known to the MDS, or whoever asked was told that it is not.
  void NoteStoredLocked(const Inode& inode);
  void ReportGrowth(const InodePtr& inode);
  void ReportEnded(InodeId inode);
  // Maybe nothing of it is left to report.
  void Settle(const InodePtr& inode);

  Clock& clock_;
  InodeTable& inodes_;
  FileLeases& leases_;
  WriteReporter& reporter_;
  TakeoverLog* const takeover_;
  mutable std::mutex mutex_;
  std::map<InodeId, TimePoint> unreported_;  // pinned, since when
  std::set<InodeId> holding_;                // of these attributes may be held
  ClosedFiles closed_;                       // of unreported_
  // What waits for the MDS to know how far files have grown.
  std::map<InodeId, std::vector<WriteCallback>> growing_;
  // With a report on its way: what waits for its answer.
  std::map<InodeId, std::vector<std::function<void()>>> reporting_;
};

}  // namespace weir::client
