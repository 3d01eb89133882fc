#include "client/data/file_io.h"

#include <algorithm>
#include <cstring>

#include "common/base/after_all.h"
#include "common/base/log.h"

namespace weir::client {
namespace {

bool CoveredBy(const std::vector<WriteBack::Piece>& pieces, uint64_t offset, uint64_t length) {
  return std::any_of(pieces.begin(), pieces.end(), [&](const WriteBack::Piece& piece) {
    return piece.offset == offset && piece.data.size() == length;
  });
}

// One buffer of what was read with the newer pieces over it.
Segments Overlay(const Segments& below, uint64_t offset, uint64_t length,
                 const std::vector<WriteBack::Piece>& pieces) {
  Buffer merged = Buffer::Aligned(length);
  CopyTo(below, merged.data());
  for (const WriteBack::Piece& piece : pieces) {
    std::memcpy(merged.data() + (piece.offset - offset), piece.data.data(), piece.data.size());
  }
  return {merged};
}

bool FoundNoRoom(ErrorCode code) {
  return code == ErrorCode::kNoSpace || code == ErrorCode::kQuota;
}

}  // namespace

FileIo::FileIo(Clock& clock, ObjectIo& objects, InodeTable& inodes, const CallerClasses& classes,
               FileLeases& leases, WriteReporter& reporter, Options options)
    : stamps_(clock),
      objects_(objects),
      inodes_(inodes),
      classes_(classes),
      leases_(leases),
      reporter_(reporter),
      options_(options),
      reports_(clock, inodes, leases, reporter, options.takeover),
      read_ahead_(options.read_ahead),
      write_back_(clock, options.write_back,
                  [this](const InodePtr& inode, const OpenerPtr& opener, uint64_t offset,
                         const Buffer& data, bool aged, WriteCallback done) {
                    FileTarget target = TargetOf(*inode, *opener);
                    target.background = aged;
                    WriteObjects(objects_, target, PrepareWrite(target.layout, offset, data),
                                 [inode, done = std::move(done)](const auto& grown) {
                                   if (FoundNoRoom(grown.code())) inode->MeetsNoRoom();
                                   done(grown.status());
                                 });
                  }),
      growth_([this](const Growth::Question& question, Growth::Answer answer) {
        reporter_.AskRoom(question.inode, question.class_id, question.end, std::move(answer));
      }) {}

FileTarget FileIo::TargetOf(const Inode& inode, const Opener& opener, Abandoned abandoned) const {
  const ClassId charged = classes_.Of(inode, opener);
  return {inode.id(),           charged,         inode.layout(),
          std::move(abandoned), opener.fenced(), classes_.FlowOf(charged, opener)};
}

void FileIo::Read(const HandlePtr& handle, uint64_t offset, uint64_t length, ReadCallback callback,
                  Abandoned abandoned) {
  const InodePtr& inode = handle->inode;
  const OpenerPtr& opener = handle->opener;
  const uint64_t size = inode->size();
  if (offset >= size) return callback(Segments{});
  length = std::min(length, size - offset);
  if (handle->direct || options_.read_ahead.ahead_bytes == 0) {
    return ReadOver({inode, opener, std::move(abandoned)}, offset, length, std::move(callback));
  }
  // What is fetched ahead may serve others than the caller.
  auto fetch = [this, inode, opener](uint64_t from, uint64_t bytes, bool ahead, ReadCallback done) {
    ReadOver({inode, opener, nullptr, ahead}, from, bytes, std::move(done));
  };
  read_ahead_.Read(handle->stream, classes_.Of(*inode, *opener), offset, length, size,
                   inode->generation(), fetch, std::move(callback));
}

// What lies over the OSDs' bytes is taken before they are asked: data that lands there meanwhile
// cannot be missed.
void FileIo::ReadOver(Reader reader, uint64_t offset, uint64_t length, ReadCallback callback) {
  auto pieces = write_back_.Overlapping(reader.inode->id(), offset, length);
  FileTarget target = TargetOf(*reader.inode, *reader.opener, std::move(reader.abandoned));
  target.background = reader.background;
  if (pieces.empty()) return ReadObjects(objects_, target, offset, length, std::move(callback));
  if (CoveredBy(pieces, offset, length)) {
    Segments zeros;
    AppendZeros(length, &zeros);
    return callback(Overlay(zeros, offset, length, pieces));
  }
  ReadObjects(objects_, target, offset, length,
              [offset, length, pieces = std::move(pieces),
               callback = std::move(callback)](Result<Segments> below) {
                if (!below.ok()) return callback(below.status());
                callback(Overlay(*below, offset, length, pieces));
              });
}

void FileIo::Write(const HandlePtr& handle, uint64_t offset, const Buffer& data,
                   const RightsLost& lost, WriteCallback callback, Abandoned abandoned) {
  const InodePtr& inode = handle->inode;
  if (offset + data.size() > kMaxFileSize) {
    return callback(Status(ErrorCode::kFileTooBig, "beyond the largest file"));
  }
  if (handle->opener->is_fenced()) return callback(LostError());
  const Wrote wrote{inode,
                    handle->opener,
                    offset + data.size(),
                    lost,
                    {.wrote = WholeBlocks(offset, data.size())}};
  if (inode->knows_layout() && !NeedsRoom(wrote)) {
    return WriteNow(wrote, handle->direct, offset, data, std::move(callback), std::move(abandoned));
  }
  auto go = [this, wrote, direct = handle->direct, offset, kept = data.Kept(),
             callback = std::move(callback), abandoned](const Status& status) {
    if (!status.ok()) return callback(status);
    WriteNow(wrote, direct, offset, kept, callback, abandoned);
  };
  AwaitPlace(wrote, std::move(go), std::move(abandoned));
}

void FileIo::AwaitPlace(const Wrote& wrote, Growth::Ready ready, Abandoned abandoned) {
  const Inode& inode = *wrote.inode;
  if (inode.knows_layout()) return AwaitRoom(wrote, std::move(ready), std::move(abandoned));
  auto known = [this, wrote, as_of = inode.layout_mark(), ready = std::move(ready),
                abandoned = std::move(abandoned)](const Status& status) {
    if (!status.ok()) return ready(status);
    wrote.inode->KnowsLayout(as_of);
    AwaitRoom(wrote, ready, abandoned);
  };
  reporter_.AskAttributes(inode.id(), std::move(known));
}

bool FileIo::NeedsRoom(const Wrote& wrote) const {
  const Inode& inode = *wrote.inode;
  return wrote.end > inode.size() && wrote.end > inode.allowed_end() &&
         classes_.HasCapacity(classes_.Of(inode, *wrote.opener));
}

void FileIo::AwaitRoom(const Wrote& wrote, Growth::Ready ready, Abandoned abandoned) {
  if (!NeedsRoom(wrote)) return ready({});
  growth_.Await(wrote.inode, classes_.Of(*wrote.inode, *wrote.opener), wrote.end, std::move(ready),
                std::move(abandoned));
}

void FileIo::WriteNow(const Wrote& wrote, bool direct, uint64_t offset, const Buffer& data,
                      WriteCallback callback, Abandoned abandoned) {
  const InodePtr& inode = wrote.inode;
  if (!leases_.BeginWrite(inode->id())) {
    return WriteShared(wrote, PrepareWrite(inode->layout(), offset, data), std::move(callback),
                       std::move(abandoned));
  }
  if (!leases_.alone()) {
    callback = [this, inode, callback = std::move(callback)](const Status& status) {
      EndChange(inode, true, status, callback);
    };
  }
  if (!direct && !inode->lacks_room() && !IsShortOfRoom(data.size())) {
    const WriteBack::Writer writer{wrote.opener, classes_.Of(*inode, *wrote.opener)};
    // The size is known here before the kernel hears of success, as a read may follow at once.
    return write_back_.Write(
        inode, writer, offset, data.span(),
        [this, wrote, callback = std::move(callback)](const Status& status) {
          if (status.ok()) NoteWrote(wrote);
          callback(status);
        },
        std::move(abandoned));
  }
  WriteBehind(wrote, PrepareWrite(inode->layout(), offset, data), std::move(callback),
              std::move(abandoned));
}

// Others have it open.
void FileIo::WriteShared(const Wrote& wrote, PreparedWrite write, WriteCallback callback,
                         Abandoned abandoned) {
  auto done = [this, inode = wrote.inode, callback = std::move(callback)](const Status& status) {
    EndChange(inode, false, status, callback);
  };
  WriteBehind(wrote, std::move(write), std::move(done), std::move(abandoned));
}

// Without a lease others shall see the data, its size and times when this is answered.
void FileIo::EndChange(const InodePtr& inode, bool leased, const Status& status,
                       const WriteCallback& callback) {
  if (leased) leases_.EndWrite(inode->id());
  if (leased || !status.ok()) return callback(status);
  const auto fresh = inode->BeginReport();
  if (!fresh.has_value()) return callback(status);  // with another's
  reports_.Report(inode, *fresh, false, callback);
}

// What is buffered is older.
void FileIo::WriteBehind(const Wrote& wrote, PreparedWrite write, WriteCallback callback,
                         Abandoned abandoned) {
  const InodeId inode = wrote.inode->id();
  const uint64_t bytes = write.bytes();
  const bool is_short = IsShortOfRoom(bytes) && write_back_.held_bytes() > 0;
  if (!is_short && !write_back_.Holds(inode)) {
    return WriteThrough(wrote, std::move(write), std::move(callback), std::move(abandoned));
  }
  auto go = [this, wrote, write = std::make_shared<PreparedWrite>(std::move(write)),
             callback = std::move(callback), abandoned = std::move(abandoned)] {
    WriteThrough(wrote, std::move(*write), callback, abandoned);
  };
  if (is_short) return PlaceHeldFirst(bytes, std::move(go));
  write_back_.Flush(inode, std::move(go));
}

// Half of what is free is for others: mounts, and what goes past the write-back.
bool FileIo::IsShortOfRoom(uint64_t more_bytes) const {
  if (near_full_) return true;
  const uint64_t room = objects_.least_room() / 2;
  if (room >= options_.write_back.bytes_max + more_bytes) return false;
  return room < write_back_.held_bytes() + more_bytes;
}

void FileIo::PlaceHeldFirst(uint64_t more_bytes, std::function<void()> then) {
  if (!IsShortOfRoom(more_bytes)) return then();
  const std::vector<InodeId> held = write_back_.Files();
  if (held.empty()) return then();
  const auto placed = AfterAll(held.size(), std::move(then));
  for (const InodeId inode : held) write_back_.Flush(inode, placed);
}

void FileIo::WriteThrough(const Wrote& wrote, PreparedWrite write, WriteCallback callback,
                          Abandoned abandoned) {
  WriteObjects(objects_, TargetOf(*wrote.inode, *wrote.opener, std::move(abandoned)),
               std::move(write),
               [this, wrote, callback = std::move(callback)](const Result<uint64_t>& grown) {
                 if (!grown.ok()) return callback(grown.status());
                 // What only replaces something says nothing of room.
                 if (*grown > 0) wrote.inode->FindsRoom();
                 Wrote done = wrote;
                 done.space.wrote = *grown;
                 NoteWrote(done);
                 reports_.TellGrowth(done.inode, done.end, callback);
               });
}

void FileIo::NoteWrote(const Wrote& wrote) {
  const InodePtr& inode = wrote.inode;
  inode->Wrote(wrote.end, stamps_.Next(), wrote.lost, classes_.Of(*inode, *wrote.opener),
               wrote.space);
  reports_.Wrote(inode->id());
}

void FileIo::DropAbandoned() {
  growth_.DropAbandoned();
  write_back_.DropAbandoned();
  objects_.DropAbandoned();
}

void FileIo::Sync(const InodePtr& inode, bool commit, WriteCallback callback) {
  const auto report = inode->BeginReport();
  write_back_.Flush(inode->id(), [this, inode, report, commit, callback = std::move(callback)] {
    if (!report.has_value()) return callback(Status::Ok());
    reports_.Report(inode, *report, commit, callback);
  });
}

Status FileIo::Told(Handle& handle, const Status& status) {
  Status earlier = handle.inode->TakeError(&handle.errors_told, handle.hears());
  if (earlier.ok()) return status;
  reports_.ToldError(*handle.inode);
  return earlier;
}

Status FileIo::ToldAtClose(Handle& handle, const Status& status) {
  if (handle.HearsAtClose()) return handle.HasNewErrors() ? Told(handle, status) : status;
  if (!status.ok()) handle.inode->RememberError(status);  // for those who wrote
  return Status::Ok();
}

void FileIo::Fsync(const HandlePtr& handle, bool data_only, WriteCallback callback) {
  const InodePtr& inode = handle->inode;
  auto told = [this, handle, then = handle->changes(),
               callback = std::move(callback)](const Status& status) {
    handle->Flushed(then);
    callback(Told(*handle, status));
  };
  // The report's answer may have brought it.
  auto synced = [this, id = inode->id(), named = reporter_.last_order(),
                 told = std::move(told)](const Status& status) {
    if (!status.ok()) return told(status);
    reporter_.Commit(named, id, told);
  };
  // A successor of this process would tell of what it does not know to be stored.
  if (!data_only || options_.takeover != nullptr) return Sync(inode, true, std::move(synced));
  write_back_.Flush(inode->id(), [this, inode, synced = std::move(synced)] {
    if (inode->owes_only_times()) return synced(Status::Ok());
    Sync(inode, true, synced);
  });
}

// A successor of this process could tell nobody of what a closed file lost. What counts against a
// quota is counted then, for other mounts. Unless the MDS was heard just now this mount may be cut
// off: the closer hears of a loss.
bool FileIo::ClosesAtOnce(const Inode& inode) {
  if (options_.sync_close || options_.takeover != nullptr) return false;
  if (IsShortOfRoom(0) || inode.lacks_room() || (inode.has_quota() && !leases_.alone())) {
    return false;
  }
  return leases_.alone() || leases_.Trust() > Duration::zero();
}

void FileIo::Close(const HandlePtr& handle, WriteCallback callback) {
  const InodePtr& inode = handle->inode;
  auto closed = [this, handle, then = handle->changes(),
                 callback = std::move(callback)](const Status& status) {
    handle->Flushed(then);
    callback(ToldAtClose(*handle, status));
  };
  if (!ClosesAtOnce(*inode) || !leases_.BeginWrite(inode->id())) {
    return Sync(inode, true, std::move(closed));
  }
  reports_.Closed(*inode);
  leases_.EndWrite(inode->id());
  if (inode->is_emptied()) StoreClosed(std::vector{inode->id()}, [] {});
  closed(Status::Ok());
}

void FileIo::Renamed(InodeId id, const MadeName& from, const MadeName& to) {
  const InodePtr inode = inodes_.Find(id);
  if (inode == nullptr || inode->made_name() != from) return;
  inode->Made(to);
  reports_.Renamed(*inode);
}

void FileIo::StoreClosed(const MadeName& name, std::function<void()> then) {
  StoreClosed(reports_.ClosedWith(name), std::move(then));
}

void FileIo::StoreClosed(const std::vector<InodeId>& inodes, std::function<void()> then) {
  std::vector<InodePtr> closed;
  for (const InodeId id : inodes) {
    if (InodePtr inode = inodes_.Find(id)) closed.push_back(std::move(inode));
  }
  if (closed.empty()) return then();
  const auto synced = AfterAll(closed.size(), std::move(then));
  for (const InodePtr& inode : closed) {
    Sync(inode, true, [inode, synced](const Status& status) {
      if (!status.ok()) inode->RememberError(status);  // for the next fsync or close
      synced();
    });
  }
}

// Not of a file that another mount has seen: it may be about to open it, and shall find what was
// closed before. What is on its way to the OSDs arrives before the file is released: late, it would
// come back.
void FileIo::Forgotten(InodeId id) {
  if (!leases_.alone() && !leases_.IsUnseen(id)) return;
  if (!reports_.HasClosed(id)) return;
  const InodePtr inode = inodes_.Find(id);
  if (inode == nullptr) return;
  write_back_.Drop(id);
  write_back_.Flush(id, [this, inode] {
    reports_.WhenReported(inode->id(), [this, inode] { reports_.Lose(inode); });
  });
}

void FileIo::Tick() {
  write_back_.Tick();
  PlaceHeldFirst(0, [] {});
  for (const InodePtr& inode : reports_.TakeOld(options_.report_age)) {
    const auto report = inode->BeginReport();
    if (!report.has_value()) continue;
    // An error of the write-back stays with the inode for the next fsync or close.
    write_back_.Flush(inode->id(), [this, inode, report] {
      reports_.Report(inode, *report, false, [](const Status&) {});
    });
  }
}

void FileIo::SetMap(const ClusterMap& map) {
  near_full_ = map.near_full;
  std::map<ClassId, uint64_t> limits;
  for (const auto& [id, entry] : map.classes) {
    if (entry.spec.limit_bytes_per_s) limits.emplace(id, *entry.spec.limit_bytes_per_s);
  }
  write_back_.SetLimits(std::move(limits));
}

void FileIo::Evicted() {
  const std::vector<ClosedFiles::Waiters> closed = reports_.LoseAll();
  if (!closed.empty()) {
    WEIR_LOG_WARN("{} files that were closed lately lost what was not stored yet", closed.size());
  }
  for (const InodeId id : write_back_.Files()) write_back_.Flush(id, [] {});  // in vain
  for (const ClosedFiles::Waiters& waiting : closed) {
    for (const auto& then : waiting) then();
  }
}

void FileIo::SyncAll(std::function<void()> done) {
  const std::vector<InodePtr> all = reports_.All();
  if (all.empty()) return done();
  const auto synced = AfterAll(all.size(), std::move(done));
  for (const InodePtr& inode : all) Sync(inode, true, [synced](const Status&) { synced(); });
}

}  // namespace weir::client
