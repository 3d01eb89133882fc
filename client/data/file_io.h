// FileIo: reads, writes and syncs of files: where buffers, read-ahead, striping and the reports to
// the MDS meet.
//
// Buffered writes go into WriteBack, also what the kernel of an exclusive mount writes back; direct
// ones go straight to the OSDs. A report (file_reports.h) follows the data: at fsync and when it is
// 4 s old; attributes that are held go with it. Without a lease for writing (file_leases.h) nothing
// is buffered or held, and the report precedes the answer. Nor is anything buffered of a file whose
// last write-back found no room, until a write finds some, nor while the map says that an OSD is
// nearly full.
// Every request is charged to the class of the file for whoever opened it, as it is when the
// request is made: also what was read ahead for him, and what he wrote some seconds ago. Threads:
// any; callbacks on RPC threads, or before the call returns. Errors: as read_ahead.h,
// object_reader.h; Fsync and Close give the error of an earlier write-back of the inode, once.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "client/data/file_reports.h"
#include "client/data/growth.h"
#include "client/data/range_io.h"
#include "client/data/read_ahead.h"
#include "client/data/write_back.h"
#include "client/data/write_reporter.h"
#include "client/vfs/file_leases.h"
#include "client/vfs/handle_table.h"
#include "common/base/stamps.h"

namespace weir::client {

class TakeoverLog;

// A change of a range by whoever has the file open.
struct RangeChange {
  uint64_t offset = 0;
  uint64_t length = 0;
  bool zeros = false;     // it reads as zeros afterwards
  bool allocate = false;  // space is kept for it; else it takes none
  bool keep_size = false;
  RightsLost lost;
};

class FileIo {
 public:
  struct Options {
    ReadAhead::Options read_ahead;
    WriteBack::Options write_back;
    Duration report_age = std::chrono::seconds(4);
    bool sync_close = false;          // see Close
    TakeoverLog* takeover = nullptr;  // is told which files have something that is not stored
  };
  FileIo(Clock& clock, ObjectIo& objects, InodeTable& inodes, const CallerClasses& classes,
         FileLeases& leases, WriteReporter& reporter, Options options);

  // Up to `length` bytes, less at the end of the file.
  void Read(const HandlePtr& handle, uint64_t offset, uint64_t length, ReadCallback callback,
            Abandoned abandoned = nullptr);
  // `data` may be borrowed for as long as the call.
  void Write(const HandlePtr& handle, uint64_t offset, const Buffer& data, const RightsLost& lost,
             WriteCallback callback, Abandoned abandoned = nullptr);
  // fallocate: space that is kept for a range, of which the MDS knows then, or a hole.
  void Allocate(const HandlePtr& handle, const RangeChange& change, WriteCallback callback,
                Abandoned abandoned = nullptr);
  // The next data or hole; none: there is no data behind `offset`, or it is not in the file.
  void Seek(const HandlePtr& handle, Wanted wanted, uint64_t offset, OffsetCallback callback);
  // Copies into `range` what `from` has from `from_offset` on; answers how much, which may be less.
  // Requires: the ranges do not overlap.
  void Copy(const HandlePtr& from, uint64_t from_offset, const HandlePtr& to,
            const RangeChange& range, CountCallback callback, Abandoned abandoned = nullptr);
  // Sets attributes here, of which the MDS hears with what is written. False: it is to be asked.
  bool HoldAttributes(const InodePtr& inode, const HeldAttributes& change, uint32_t caller_uid,
                      ClassId class_id) {
    return reports_.Hold(inode, change, caller_uid, class_id);
  }
  // `then` when the MDS knows of all that were set before: of that file, for what depends on them;
  // of all files, for changes of names, which shall not be durable earlier. Data is not waited for.
  void TellHeld(const InodePtr& inode, std::function<void()> then) {
    reports_.TellHeld(inode, std::move(then));
  }
  void TellHeld(std::function<void()> then) { reports_.TellHeld(std::move(then)); }
  // Lets go of what is abandoned and waits for memory or for a place in a window.
  void DropAbandoned();
  // Everything written before the call is on the OSDs, and the MDS knows (`commit`: durably).
  // Errors of earlier write-backs stay with the inode.
  void Sync(const InodePtr& inode, bool commit, WriteCallback callback);
  // The same, and that the file has its name is durable; whoever has the handle hears of errors
  // that it has not told yet. `data_only`, of
  // fdatasync(2) and O_DSYNC: times may be told later, which spares a batch of the MDS.
  void Fsync(const HandlePtr& handle, bool data_only, WriteCallback callback);
  // For a close, which ends at once under a lease: what was written is stored with age, or when
  // somebody else looks, as if the file were open still; at once, without waiting for it, what
  // replaces the data of a file that was cut to nothing. Else, and with sync_close, as Fsync, but
  // he hears only if he has changed or locked the file.
  void Close(const HandlePtr& handle, WriteCallback callback);
  // What a close tells that stores nothing, or has ended so.
  Status ToldAtClose(Handle& handle, const Status& status = {});
  // `then`, at once or later, when nothing of a file that was closed so is left to store or report.
  void WhenStored(InodeId inode, std::function<void()> then) {
    reports_.WhenStored(inode, std::move(then));
  }
  // Whether something that was closed so, and is not stored, has or may have that name; `then` when
  // that is: for a name that shall not replace another before it has its data.
  [[nodiscard]] bool HasClosed(const MadeName& name) const { return reports_.HasClosed(name); }
  void StoreClosed(const MadeName& name, std::function<void()> then);
  // A file, or whatever it is, that had the first name has the second.
  void Renamed(InodeId inode, const MadeName& from, const MadeName& to);
  // The kernel has forgotten a file that has lost its last name: what of it was closed and is not
  // stored yet is dropped.
  void Forgotten(InodeId inode);
  // `then` when no report of the file is on its way to the MDS: for what must not overtake one.
  void WhenReported(InodeId inode, std::function<void()> then) {
    reports_.WhenReported(inode, std::move(then));
  }
  // Of what is written and set here.
  [[nodiscard]] Stamps& stamps() { return stamps_; }
  // Everything written before the call is on the OSDs.
  void Flush(const InodePtr& inode, std::function<void()> done) {
    write_back_.Flush(inode->id(), std::move(done));
  }
  // Flushes and reports what is old.
  void Tick();
  // Limits of classes bound what they may have waiting here.
  void SetMap(const ClusterMap& map);
  // Written and not on the OSDs yet.
  [[nodiscard]] uint64_t dirty_bytes() const { return write_back_.held_bytes(); }
  // The session was evicted (caller_classes.h knows): what is not stored and reported is lost, and
  // the users of those files hear of it by an error.
  void Evicted();
  // Starts to flush and report everything; `done` when all that was there is.
  void SyncAll(std::function<void()> done);

 private:
  // A write of an open file on its way: where it ends, and who made it.
  struct Wrote {
    InodePtr inode;
    OpenerPtr opener;
    uint64_t end;
    RightsLost lost;
    SpaceChange space{};
  };
  FileTarget TargetOf(const Inode& inode, const Opener& opener,
                      Abandoned abandoned = nullptr) const;
  struct Reader {
    InodePtr inode;
    OpenerPtr opener;
    Abandoned abandoned = nullptr;
    bool background = false;  // nobody has asked for it yet
  };
  void ReadOver(Reader reader, uint64_t offset, uint64_t length, ReadCallback callback);
  void WriteNow(const Wrote& wrote, bool direct, uint64_t offset, const Buffer& data,
                WriteCallback callback, Abandoned abandoned);
  void WriteShared(const Wrote& wrote, PreparedWrite write, WriteCallback callback,
                   Abandoned abandoned);
  void WriteThrough(const Wrote& wrote, PreparedWrite write, WriteCallback callback,
                    Abandoned abandoned);
  void WriteBehind(const Wrote& wrote, PreparedWrite write, WriteCallback callback,
                   Abandoned abandoned);
  // Whether the disks might not have room for what is held here and so much more. Then nothing more
  // is held: who writes or closes hears of ENOSPC himself.
  [[nodiscard]] bool IsShortOfRoom(uint64_t more_bytes) const;
  // `then` when all that is held has its place; at once if there is room for so much besides.
  void PlaceHeldFirst(uint64_t more_bytes, std::function<void()> then);
  void KeepSpace(const Wrote& wrote, const RangeChange& change, WriteCallback callback,
                 Abandoned abandoned);
  void MakeHole(const Wrote& wrote, const RangeChange& change, WriteCallback callback,
                Abandoned abandoned);
  void NoteWrote(const Wrote& wrote);
  // `status`, or an error before it that the handle was not told of.
  Status Told(Handle& handle, const Status& status);
  [[nodiscard]] bool ClosesAtOnce(const Inode& inode);
  void StoreClosed(const std::vector<InodeId>& inodes, std::function<void()> then);
  // Ends what began with BeginWrite of the leases, which said `leased`.
  void EndChange(const InodePtr& inode, bool leased, const Status& status,
                 const WriteCallback& callback);
  [[nodiscard]] bool NeedsRoom(const Wrote& wrote) const;
  // `ready` when it is known where the file's data lies, and the class of who wrote lets the file
  // reach where it ends then.
  void AwaitPlace(const Wrote& wrote, Growth::Ready ready, Abandoned abandoned);
  void AwaitRoom(const Wrote& wrote, Growth::Ready ready, Abandoned abandoned);

  Stamps stamps_;
  ObjectIo& objects_;
  InodeTable& inodes_;
  const CallerClasses& classes_;
  FileLeases& leases_;
  WriteReporter& reporter_;
  const Options options_;
  FileReports reports_;
  ReadAhead read_ahead_;
  WriteBack write_back_;
  Growth growth_;
  std::atomic<bool> near_full_{false};  // of the map
};

}  // namespace weir::client
