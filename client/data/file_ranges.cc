// FileIo's calls on ranges that carry no data: holes, looking for them, copies. What this mount has
// written goes to the OSDs first, so that they are all that must be asked.
#include "client/data/file_io.h"

namespace weir::client {

void FileIo::Allocate(const HandlePtr& handle, const RangeChange& change, WriteCallback callback,
                      Abandoned abandoned) {
  const uint64_t end = change.offset + change.length;
  if (end > kMaxFileSize || end < change.offset) {
    return callback(Status(ErrorCode::kFileTooBig, "beyond the largest file"));
  }
  if (handle->opener->is_fenced()) return callback(LostError());
  const InodePtr inode = handle->inode;
  const bool moves_size = change.allocate || !change.keep_size;  // or may do so without asking
  const Wrote wrote{inode, handle->opener, moves_size ? end : 0, change.lost};
  auto go = [this, wrote, change, callback = std::move(callback), abandoned](const Status& status) {
    if (!status.ok()) return callback(status);
    const bool leased = leases_.BeginWrite(wrote.inode->id());
    auto done = [this, wrote, leased, callback](const Status& made) {
      EndChange(wrote.inode, leased, made, callback);
    };
    if (change.allocate) return KeepSpace(wrote, change, done, abandoned);
    MakeHole(wrote, change, done, abandoned);
  };
  AwaitPlace(wrote, std::move(go), std::move(abandoned));
}

// The MDS has the last word on the room that there is, and is told at once: who asks next must find
// less.
void FileIo::KeepSpace(const Wrote& wrote, const RangeChange& change, WriteCallback callback,
                       Abandoned abandoned) {
  const FileTarget target = TargetOf(*wrote.inode, *wrote.opener, std::move(abandoned));
  auto report = [this, wrote, change, target,
                 callback = std::move(callback)](const Result<Allocation>& allocation) {
    if (!allocation.ok()) return callback(allocation.status());
    // In this order, as in Report. What was kept may have been cut off by others since.
    const uint64_t epoch = reporter_.map_epoch();
    if (wrote.opener->is_fenced()) return callback(LostError());
    const WriteReporter::AllocatedReport told{wrote.end,  change.keep_size, stamps_.Next(),
                                              wrote.lost, target.class_id,  epoch};
    auto charged = [this, target, allocation, callback](const Status& status) {
      if (status.ok()) return callback(status);
      if (status.code() == ErrorCode::kStaleEpoch) return callback(LostError());
      GiveBackObjects(objects_, target, *allocation, [status, callback] { callback(status); });
    };
    reporter_.ReportAllocated(wrote.inode->id(), told, *allocation, charged);
  };
  auto allocate = [this, wrote, change, target, report = std::move(report)] {
    AllocateObjects(objects_, target, change.offset, change.length, change.zeros,
                    wrote.inode->size(), report);
  };
  PlaceHeldFirst(change.length, [this, inode = wrote.inode->id(), allocate = std::move(allocate)] {
    write_back_.Flush(inode, allocate);
  });
}

void FileIo::MakeHole(const Wrote& wrote, const RangeChange& change, WriteCallback callback,
                      Abandoned abandoned) {
  write_back_.Flush(wrote.inode->id(), [this, wrote, change, callback = std::move(callback),
                                        abandoned = std::move(abandoned)] {
    PunchObjects(objects_, TargetOf(*wrote.inode, *wrote.opener, abandoned), change.offset,
                 change.length, [this, wrote, callback](const Result<uint64_t>& freed) {
                   Wrote done = wrote;
                   if (freed.ok()) done.space.freed = *freed;
                   if (freed.ok()) NoteWrote(done);
                   callback(freed.status());
                 });
  });
}

void FileIo::Seek(const HandlePtr& handle, Wanted wanted, uint64_t offset,
                  OffsetCallback callback) {
  const InodePtr inode = handle->inode;
  write_back_.Flush(inode->id(), [this, inode, opener = handle->opener, wanted, offset,
                                  callback = std::move(callback)] {
    const uint64_t size = inode->size();
    if (offset >= size) return callback(std::optional<uint64_t>());
    FindInObjects(objects_, TargetOf(*inode, *opener), wanted, offset, size, callback);
  });
}

void FileIo::Copy(const HandlePtr& from, uint64_t from_offset, const HandlePtr& to,
                  const RangeChange& range, CountCallback callback, Abandoned abandoned) {
  if (range.offset > kMaxFileSize || range.length > kMaxFileSize - range.offset) {
    return callback(Status(ErrorCode::kFileTooBig, "beyond the largest file"));
  }
  if (to->opener->is_fenced()) return callback(LostError());
  auto copy = [this, from, from_offset, to, range, callback = std::move(callback),
               abandoned = std::move(abandoned)] {
    const uint64_t size = from->inode->size();
    if (from_offset >= size) return callback(uint64_t{0});
    const uint64_t length = std::min(range.length, size - from_offset);
    const Wrote wrote{to->inode, to->opener, range.offset + length, range.lost};
    auto go = [this, from, from_offset, wrote, to, range, length, callback,
               abandoned](const Status& status) {
      if (!status.ok()) return callback(status);
      const bool leased = leases_.BeginWrite(wrote.inode->id());
      CopyObjects(objects_, TargetOf(*from->inode, *from->opener, abandoned), from_offset,
                  TargetOf(*to->inode, *to->opener, abandoned), range.offset, length,
                  [this, wrote, range, leased, callback](const Result<uint64_t>& copied) {
                    if (copied.ok()) {
                      Wrote done = wrote;
                      done.end = range.offset + *copied;
                      done.space.wrote = WholeBlocks(range.offset, *copied);
                      NoteWrote(done);
                    }
                    EndChange(wrote.inode, leased, copied.status(),
                              [copied, callback](const Status& told) {
                                told.ok() ? callback(copied) : callback(told);
                              });
                  });
    };
    AwaitPlace(wrote, std::move(go), abandoned);
  };
  auto flush = [this, from, to, copy = std::move(copy)] {
    write_back_.Flush(from->inode->id(),
                      [this, to, copy] { write_back_.Flush(to->inode->id(), copy); });
  };
  PlaceHeldFirst(range.length, std::move(flush));
}

}  // namespace weir::client
