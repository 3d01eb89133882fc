#include "client/data/write_back.h"

#include <algorithm>
#include <cstring>

namespace weir::client {
namespace {
// Above this part of the memory a writer's file is sent off without waiting for its age.
constexpr uint64_t kEagerShare = 2;

bool Overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) {
  return a < b + b_size && b < a + a_size;
}
}  // namespace

WriteBack::WriteBack(Clock& clock, Options options, Store store)
    : clock_(clock), options_(options), store_(std::move(store)), budget_(options.bytes_max) {}

bool WriteBack::AdmitsLocked(ClassId class_id, uint64_t bytes) const {
  const uint64_t mine = budget_.HeldBy(class_id);
  // Its own few bytes, however full the memory is of others': they may all be throttled.
  if (mine == 0 || mine + bytes <= budget_.LeastOf(class_id)) return true;
  return mine + bytes <= budget_.LimitOf(class_id) && budget_.held() + bytes <= options_.bytes_max;
}

void WriteBack::Write(const InodePtr& inode, const Writer& writer, uint64_t offset,
                      std::span<const uint8_t> data, WriteCallback accepted, Abandoned abandoned) {
  Work work;
  {
    std::lock_guard lock(mutex_);
    auto blocked = blocked_.find(writer.class_id);
    if (blocked == blocked_.end() && AdmitsLocked(writer.class_id, Memory(data.size()))) {
      InsertLocked(inode, writer, offset, data, &work);
      work.calls.push_back([&accepted] { accepted(Status::Ok()); });
    } else {
      blocked_[writer.class_id].push_back(
          {inode, writer, offset, Buffer::CopyOf(data), std::move(accepted), std::move(abandoned)});
      LaunchClassLocked(writer.class_id, &work);
    }
  }
  Do(std::move(work));
}

void WriteBack::SetLimits(std::map<ClassId, uint64_t> bytes_per_s) {
  Work work;
  {
    std::lock_guard lock(mutex_);
    budget_.SetLimits(std::move(bytes_per_s));
    AdmitBlockedLocked(&work);
  }
  Do(std::move(work));
}

void WriteBack::DropAbandoned() {
  Work work;
  {
    std::lock_guard lock(mutex_);
    for (auto it = blocked_.begin(); it != blocked_.end();) {
      std::erase_if(it->second, [&work](Blocked& blocked) {
        if (blocked.abandoned == nullptr || !*blocked.abandoned) return false;
        work.calls.push_back([accepted = std::move(blocked.accepted)] {
          accepted(Status(ErrorCode::kCancelled, "its process was killed"));
        });
        return true;
      });
      it = it->second.empty() ? blocked_.erase(it) : std::next(it);
    }
    AdmitBlockedLocked(&work);  // what came behind it may fit
  }
  Do(std::move(work));
}

void WriteBack::InsertLocked(const InodePtr& inode, const Writer& writer, uint64_t offset,
                             std::span<const uint8_t> data, Work* work) {
  File& file = files_[inode->id()];
  file.inode = inode;
  while (!data.empty()) {
    const uint64_t room = options_.run_bytes - offset % options_.run_bytes;
    const uint64_t part = std::min<uint64_t>(room, data.size());
    InsertPieceLocked(file, writer, offset, data.first(part));
    offset += part;
    data = data.subspan(part);
  }
  for (auto run = file.dirty.begin(); run != file.dirty.end();) {
    auto next = std::next(run);
    const bool full = (run->first + run->second.size) % options_.run_bytes == 0 &&
                      run->second.size >= options_.run_bytes / 2;
    if (full) LaunchLocked(file, run, work);
    run = next;
  }
  if (dirty_bytes_ > options_.bytes_max / kEagerShare) LaunchAllLocked(file, work);
  StartReadyLocked(file, work);
}

// The piece lies within one multiple of run_bytes.
void WriteBack::InsertPieceLocked(File& file, const Writer& writer, uint64_t offset,
                                  std::span<const uint8_t> data) {
  while (!data.empty()) {
    auto next = file.dirty.upper_bound(offset);
    if (next != file.dirty.begin()) {
      auto run = std::prev(next);
      const uint64_t end = run->first + run->second.size;
      if (offset < end) {  // over bytes that are here already
        const uint64_t part = std::min<uint64_t>(end - offset, data.size());
        std::memcpy(run->second.buffer.data() + (offset - run->first), data.data(), part);
        offset += part;
        data = data.subspan(part);
        continue;
      }
    }
    const uint64_t gap = next == file.dirty.end() ? data.size() : next->first - offset;
    const uint64_t part = std::min<uint64_t>(gap, data.size());
    Run* target = nullptr;
    if (next != file.dirty.begin()) {
      auto run = std::prev(next);
      const bool adjacent =
          run->first + run->second.size == offset && run->second.writer.class_id == writer.class_id;
      if (adjacent && offset % options_.run_bytes != 0) target = &run->second;
    }
    if (target == nullptr) {
      target = &file.dirty[offset];
      target->sequence = ++last_sequence_;
      target->writer = writer;
      target->born = clock_.Now();
      dirty_files_[writer.class_id].insert(file.inode->id());
    }
    AppendLocked(*target, data.first(part));
    offset += part;
    data = data.subspan(part);
  }
}

void WriteBack::AppendLocked(Run& run, std::span<const uint8_t> data) {
  const uint64_t size = run.size + data.size();
  if (size > run.buffer.size()) {
    const uint64_t doubled = std::min<uint64_t>(run.buffer.size() * 2, options_.run_bytes);
    Buffer larger = Buffer::Aligned(std::max({size, doubled, uint64_t{kBlockSize}}));
    if (run.size > 0) std::memcpy(larger.data(), run.buffer.data(), run.size);
    run.buffer = std::move(larger);
  }
  std::memcpy(run.buffer.data() + run.size, data.data(), data.size());
  const uint64_t more = Memory(size) - Memory(run.size);
  run.size = size;
  dirty_bytes_ += more;
  budget_.Took(run.writer.class_id, more, clock_.Now());
}

void WriteBack::LeftLocked(const File& file, ClassId class_id) {
  const bool more = std::any_of(file.dirty.begin(), file.dirty.end(), [class_id](const auto& run) {
    return run.second.writer.class_id == class_id;
  });
  if (more) return;
  const auto of_class = dirty_files_.find(class_id);
  of_class->second.erase(file.inode->id());
  if (of_class->second.empty()) dirty_files_.erase(of_class);
}

void WriteBack::LaunchLocked(File& file, std::map<uint64_t, Run>::iterator it, Work* work,
                             bool aged) {
  Run& run = it->second;
  dirty_bytes_ -= Memory(run.size);
  const ClassId class_id = run.writer.class_id;
  file.flying.push_back(
      {it->first, run.buffer.Slice(0, run.size), run.sequence, run.writer, aged, false});
  file.dirty.erase(it);
  LeftLocked(file, class_id);
  StartReadyLocked(file, work);
}

void WriteBack::LaunchAllLocked(File& file, Work* work) {
  while (!file.dirty.empty()) LaunchLocked(file, file.dirty.begin(), work);
}

// What a class has in memory is all that it waits for: nobody else's runs leave half full for it.
void WriteBack::LaunchClassLocked(ClassId class_id, Work* work) {
  const auto of_class = dirty_files_.find(class_id);
  if (of_class == dirty_files_.end()) return;
  const std::vector<InodeId> inodes(of_class->second.begin(), of_class->second.end());
  for (const InodeId inode : inodes) {
    File& file = files_.at(inode);
    for (auto run = file.dirty.begin(); run != file.dirty.end();) {
      const auto next = std::next(run);
      if (run->second.writer.class_id == class_id) LaunchLocked(file, run, work);
      run = next;
    }
  }
}

// Starts every flight that no older one overlaps.
void WriteBack::StartReadyLocked(File& file, Work* work) {
  for (auto flight = file.flying.begin(); flight != file.flying.end(); ++flight) {
    if (flight->started) continue;
    const bool behind = std::any_of(file.flying.begin(), flight, [&](const Flight& older) {
      return Overlap(older.offset, older.data.size(), flight->offset, flight->data.size());
    });
    if (behind) continue;
    flight->started = true;
    work->starts.push_back(
        {file.inode, flight->writer.opener, flight, flight->offset, flight->data, flight->aged});
  }
}

void WriteBack::Landed(const InodePtr& inode, std::list<Flight>::iterator flight,
                       const Status& status) {
  if (!status.ok()) inode->RememberError(status);
  Work work;
  {
    std::lock_guard lock(mutex_);
    File& file = files_.at(inode->id());
    budget_.Landed(flight->writer.class_id, Memory(flight->data.size()), clock_.Now());
    file.flying.erase(flight);
    StartReadyLocked(file, &work);
    FinishWaitersLocked(file, &work);
    if (file.dirty.empty() && file.flying.empty()) files_.erase(inode->id());
    AdmitBlockedLocked(&work);
  }
  Do(std::move(work));
}

void WriteBack::FinishWaitersLocked(File& file, Work* work) {
  uint64_t oldest = UINT64_MAX;
  for (const auto& [offset, run] : file.dirty) oldest = std::min(oldest, run.sequence);
  for (const Flight& flight : file.flying) oldest = std::min(oldest, flight.sequence);
  std::erase_if(file.waiters, [&](FlushWaiter& waiter) {
    if (waiter.sequence >= oldest) return false;
    work->calls.push_back(std::move(waiter.done));
    return true;
  });
}

void WriteBack::AdmitBlockedLocked(Work* work) {
  for (auto it = blocked_.begin(); it != blocked_.end();) {
    std::deque<Blocked>& queue = it->second;
    while (!queue.empty() && AdmitsLocked(it->first, Memory(queue.front().data.size()))) {
      Blocked& front = queue.front();
      InsertLocked(front.inode, front.writer, front.offset, front.data.span(), work);
      // Others are still waiting: nothing may rest here until it is old.
      LaunchAllLocked(files_.at(front.inode->id()), work);
      work->calls.push_back([accepted = std::move(front.accepted)] { accepted(Status::Ok()); });
      queue.pop_front();
    }
    it = queue.empty() ? blocked_.erase(it) : std::next(it);
  }
}

void WriteBack::Do(Work work) {
  for (Work::Start& start : work.starts) {
    store_(start.inode, start.opener, start.offset, std::move(start.data), start.aged,
           [this, inode = start.inode, flight = start.flight](const Status& status) {
             Landed(inode, flight, status);
           });
  }
  for (const std::function<void()>& call : work.calls) call();
}

std::vector<WriteBack::Piece> WriteBack::Overlapping(InodeId inode, uint64_t offset,
                                                     uint64_t length) {
  std::vector<Piece> pieces;
  std::lock_guard lock(mutex_);
  auto it = files_.find(inode);
  if (it == files_.end()) return pieces;
  auto cut = [&](uint64_t begin, uint64_t size, auto&& make) {
    if (!Overlap(begin, size, offset, length)) return;
    const uint64_t from = std::max(begin, offset);
    const uint64_t to = std::min(begin + size, offset + length);
    pieces.push_back({from, make(from - begin, to - from)});
  };
  for (const Flight& flight : it->second.flying) {
    cut(flight.offset, flight.data.size(),
        [&](uint64_t from, uint64_t size) { return flight.data.Slice(from, size); });
  }
  for (const auto& [begin, run] : it->second.dirty) {
    cut(begin, run.size, [&run = run](uint64_t from, uint64_t size) {
      return Buffer::CopyOf(run.bytes().subspan(from, size));
    });
  }
  return pieces;
}

void WriteBack::Drop(InodeId inode) {
  Work work;
  {
    std::lock_guard lock(mutex_);
    const auto it = files_.find(inode);
    if (it == files_.end()) return;
    File& file = it->second;
    while (!file.dirty.empty()) {
      const Run& run = file.dirty.begin()->second;
      const ClassId class_id = run.writer.class_id;
      dirty_bytes_ -= Memory(run.size);
      budget_.Dropped(class_id, Memory(run.size));
      file.dirty.erase(file.dirty.begin());
      LeftLocked(file, class_id);
    }
    FinishWaitersLocked(file, &work);
    if (file.flying.empty()) files_.erase(it);
    AdmitBlockedLocked(&work);
  }
  Do(std::move(work));
}

void WriteBack::Flush(InodeId inode, std::function<void()> done) {
  Work work;
  bool nothing = false;
  {
    std::lock_guard lock(mutex_);
    auto it = files_.find(inode);
    nothing = it == files_.end();
    if (!nothing) {
      it->second.waiters.push_back({last_sequence_, std::move(done)});
      LaunchAllLocked(it->second, &work);
    }
  }
  if (nothing) return done();  // NOLINT(bugprone-use-after-move): moved only if not nothing
  Do(std::move(work));
}

bool WriteBack::Holds(InodeId inode) const {
  std::lock_guard lock(mutex_);
  return files_.contains(inode);
}

void WriteBack::Tick() {
  Work work;
  {
    std::lock_guard lock(mutex_);
    const TimePoint old = clock_.Now() - options_.age_max;
    for (auto& [id, file] : files_) {
      for (auto run = file.dirty.begin(); run != file.dirty.end();) {
        auto next = std::next(run);
        if (run->second.born <= old) LaunchLocked(file, run, &work, true);
        run = next;
      }
    }
  }
  Do(std::move(work));
}

std::vector<InodeId> WriteBack::Files() const {
  std::lock_guard lock(mutex_);
  std::vector<InodeId> files;
  for (const auto& [id, file] : files_) files.push_back(id);
  return files;
}

uint64_t WriteBack::held_bytes() const {
  std::lock_guard lock(mutex_);
  return budget_.held();
}

}  // namespace weir::client
