#include "client/data/range_io.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "client/data/object_reader.h"
#include "client/data/object_span.h"
#include "common/base/after_all.h"

namespace weir::client {
namespace {

constexpr uint64_t kWindowObjects = 64;  // asked at the same time

struct FileRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The answers of a window of objects; the last one goes on.
struct Window {
  std::mutex mutex;
  std::vector<ObjectSpan> spans;
  std::vector<ObjectOutcome> outcomes;
  std::vector<bool> succeeded;
  size_t missing = 0;
  Status error;
  std::function<void(Window&)> all;

  void Arrived(size_t index, Result<ObjectOutcome> result) {
    {
      std::lock_guard lock(mutex);
      if (result.ok()) {
        outcomes[index] = std::move(*result);
        succeeded[index] = true;
      } else if (error.ok()) {
        error = result.status();
      }
      if (--missing > 0) return;
    }
    const auto go_on = std::move(all);  // it holds the walk, which holds nothing of this
    go_on(*this);
  }

  // The first index of an object that an OSD may have behind these; UINT64_MAX: no OSD has one.
  [[nodiscard]] uint64_t NextIndex(size_t osds) const {
    // What an OSD says of the last one it was asked for; those before are followed by it.
    std::map<OsdId, uint64_t> next_of;
    for (const size_t i : InOrderOfIndex()) next_of[outcomes[i].osd] = outcomes[i].next_object;
    if (next_of.size() < osds) return 0;
    uint64_t next = UINT64_MAX;
    for (const auto& [osd, index] : next_of) next = std::min(next, index);
    return next;
  }

  [[nodiscard]] std::vector<size_t> InOrderOfIndex() const {
    std::vector<size_t> order(spans.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [this](size_t a, size_t b) { return spans[a].object_index < spans[b].object_index; });
    return order;
  }

  // What the objects say is data, as ranges of the file in order.
  [[nodiscard]] std::vector<FileRange> Data() const {
    std::vector<FileRange> ranges;
    for (size_t i = 0; i < spans.size(); ++i) {
      for (const auto& [offset, length] : outcomes[i].extents) {
        for (const ObjectExtent& piece : spans[i].pieces) {
          const uint64_t begin = std::max(offset, piece.object_offset);
          // The rest of the last block is data too, although the object may end before.
          const uint64_t data_end = (offset + length + kBlockSize - 1) / kBlockSize * kBlockSize;
          const uint64_t end = std::min(data_end, piece.object_offset + piece.length);
          if (begin >= end) continue;
          const uint64_t at = piece.file_offset + (begin - piece.object_offset);
          ranges.push_back({at, at + (end - begin)});
        }
      }
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const FileRange& a, const FileRange& b) { return a.begin < b.begin; });
    return ranges;
  }
};

// Asks all objects of a range, window by window, until `visit` is content or the range is over.
class Walk : public std::enable_shared_from_this<Walk> {
 public:
  using Visit = std::function<bool(const Window&, const FileRange&)>;  // true: that is enough
  Walk(ObjectIo& io, FileTarget target, ObjectOp::Verb verb, Visit visit, WriteCallback done,
       bool zeros = false)
      : io_(io),
        target_(std::move(target)),
        verb_(verb),
        zeros_(zeros),
        osds_(io.OsdsOf(target_.layout.pool)),
        visit_(std::move(visit)),
        done_(std::move(done)) {}

  void Go(uint64_t offset, uint64_t end) {
    if (offset >= end) return done_(Status::Ok());
    const uint64_t step = kWindowObjects * target_.layout.object_size;
    const FileRange range{offset, std::min(end, offset / step * step + step)};
    auto window = std::make_shared<Window>();
    window->spans = MapSpans(target_.layout, range.begin, range.end - range.begin);
    window->outcomes.resize(window->spans.size());
    window->succeeded.resize(window->spans.size());
    window->missing = window->spans.size();
    window->all = [self = shared_from_this(), range, end](Window& answered) {
      self->Answered(answered, range, end);
    };
    for (size_t i = 0; i < window->outcomes.size(); ++i) {
      const ObjectSpan& span = window->spans[i];
      ObjectOp op = target_.Op(span.object_index, span.object_offset, span.length);
      op.verb = verb_;
      op.write = verb_ != ObjectOp::Verb::kExtents;
      op.zeros = zeros_;
      op.want_next = range.end < end && verb_ != ObjectOp::Verb::kAllocate;
      if (op.write) op.fenced = target_.fenced;
      op.done = [window, i](Result<ObjectOutcome> result) {
        window->Arrived(i, std::move(result));
      };
      io_.Submit(std::move(op));
    }
  }

 private:
  void Answered(Window& window, const FileRange& range, uint64_t end) {
    const bool enough = visit_(window, range);  // also what succeeded beside a failure
    if (!window.error.ok()) return done_(window.error);
    if (enough) return done_(Status::Ok());
    uint64_t next = range.end;
    if (next < end && verb_ != ObjectOp::Verb::kAllocate) {
      const uint64_t index = window.NextIndex(osds_);
      const uint64_t set = index / target_.layout.stripe_count;
      const uint64_t set_bytes = target_.layout.stripe_count * target_.layout.object_size;
      next = set >= end / set_bytes + 1 ? end : std::max(next, set * set_bytes);
    }
    Go(next, end);
  }

  ObjectIo& io_;
  const FileTarget target_;
  const ObjectOp::Verb verb_;
  const bool zeros_;
  const size_t osds_;
  const Visit visit_;
  const WriteCallback done_;
};

// Where the wanted begins in a window; at its end a hole is not found yet.
std::optional<uint64_t> Find(Wanted wanted, const std::vector<FileRange>& data,
                             const FileRange& range) {
  uint64_t at = range.begin;
  for (const FileRange& one : data) {
    if (one.end <= at) continue;
    if (wanted == Wanted::kData) return std::max(at, one.begin);
    if (one.begin > at) return at;
    at = one.end;
  }
  if (wanted == Wanted::kData || at >= range.end) return std::nullopt;
  return at;
}

// How much of what an object kept newly lies behind that offset of the file.
uint64_t BytesBehind(uint64_t file_size, const ObjectSpan& span,
                     const ObjectOutcome::Extents& kept) {
  const uint64_t end = (file_size + kBlockSize - 1) / kBlockSize * kBlockSize;
  uint64_t bytes = 0;
  for (const auto& [offset, length] : kept) {
    for (const ObjectExtent& piece : span.pieces) {
      // Whole blocks are kept, although the range may begin and end within.
      const uint64_t ragged = piece.object_offset % kBlockSize;
      const uint64_t piece_end =
          (piece.object_offset + piece.length + kBlockSize - 1) / kBlockSize * kBlockSize;
      const uint64_t begin = std::max(offset, piece.object_offset - ragged);
      const uint64_t stop = std::min(offset + length, piece_end);
      if (begin >= stop) continue;
      const uint64_t at = piece.file_offset - ragged + (begin - (piece.object_offset - ragged));
      bytes += at + (stop - begin) - std::clamp(end, at, at + (stop - begin));
    }
  }
  return bytes;
}

struct CopyPiece {
  ObjectExtent from;
  ObjectExtent to;
  bool together = false;
};

// Cuts the range where either file goes on in another object.
std::vector<CopyPiece> PlanCopy(ObjectIo& io, const FileTarget& from, uint64_t from_offset,
                                const FileTarget& to, uint64_t to_offset, uint64_t length) {
  std::vector<CopyPiece> pieces;
  uint64_t here = 0;
  const auto sources = MapRange(from.layout, from_offset, length);
  const auto targets = MapRange(to.layout, to_offset, length);
  for (size_t s = 0, t = 0; s < sources.size() && t < targets.size();) {
    const uint64_t source_end = sources[s].file_offset + sources[s].length - from_offset;
    const uint64_t target_end = targets[t].file_offset + targets[t].length - to_offset;
    const uint64_t begin =
        std::max(sources[s].file_offset - from_offset, targets[t].file_offset - to_offset);
    const uint64_t part = std::min(source_end, target_end) - begin;
    CopyPiece piece{sources[s], targets[t]};
    const auto cut = [part](ObjectExtent* extent, uint64_t at) {
      extent->object_offset += at - extent->file_offset;
      extent->file_offset = at;
      extent->length = part;
    };
    cut(&piece.from, from_offset + begin);
    cut(&piece.to, to_offset + begin);
    piece.together = from.layout.pool == to.layout.pool && from.layout.tier == to.layout.tier &&
                     io.Together(to.layout.pool, {from.inode, piece.from.object_index},
                                 {to.inode, piece.to.object_index});
    if (!piece.together && (here += part) > kCopyMostHere && !pieces.empty()) break;
    pieces.push_back(piece);
    if (source_end <= target_end) ++s;
    if (target_end <= source_end) ++t;
  }
  return pieces;
}

struct CopyGather {
  std::mutex mutex;
  size_t missing = 0;
  uint64_t total = 0;
  Status error;
  CountCallback callback;

  void Arrived(const Status& status) {
    {
      std::lock_guard lock(mutex);
      if (error.ok()) error = status;
      if (--missing > 0) return;
    }
    if (!error.ok()) return callback(error);
    callback(total);
  }
};

void CopyHere(ObjectIo& io, const FileTarget& from, const FileTarget& to, const CopyPiece& piece,
              WriteCallback done) {
  ReadObjects(io, from, piece.from.file_offset, piece.from.length,
              [&io, to, piece, done = std::move(done)](Result<Segments> read) {
                if (!read.ok()) return done(read.status());
                Buffer data = Buffer::Aligned(piece.to.length);
                CopyTo(*read, data.data());
                WriteObjects(io, to, PrepareWrite(to.layout, piece.to.file_offset, data),
                             [done](const Result<uint64_t>& grown) { done(grown.status()); });
              });
}

void CopyInOsd(ObjectIo& io, const FileTarget& from, const FileTarget& to, const CopyPiece& piece,
               WriteCallback done) {
  ObjectOp op = to.Op(piece.to.object_index, piece.to.object_offset, piece.to.length);
  op.verb = ObjectOp::Verb::kCopy;
  op.write = true;
  op.source = {from.inode, piece.from.object_index};
  op.source_offset = piece.from.object_offset;
  op.fenced = to.fenced;
  op.done = [&io, from, to, piece, done = std::move(done)](const Result<ObjectOutcome>& result) {
    // The map has changed, or the OSD is an older one.
    if (result.code() == ErrorCode::kNotSupported) return CopyHere(io, from, to, piece, done);
    done(result.status());
  };
  io.Submit(std::move(op));
}

}  // namespace

void PunchObjects(ObjectIo& io, const FileTarget& target, uint64_t offset, uint64_t length,
                  CountCallback callback) {
  auto freed = std::make_shared<uint64_t>(0);
  auto count = [freed](const Window& window, const FileRange&) {
    for (const ObjectOutcome& outcome : window.outcomes) *freed += outcome.freed_bytes;
    return false;
  };
  auto done = [freed, callback = std::move(callback)](const Status& status) {
    if (!status.ok()) return callback(status);
    callback(*freed);
  };
  std::make_shared<Walk>(io, target, ObjectOp::Verb::kPunch, count, done)
      ->Go(offset, offset + length);
}

void AllocateObjects(ObjectIo& io, const FileTarget& target, uint64_t offset, uint64_t length,
                     bool zeros, uint64_t file_size, AllocationCallback callback) {
  auto allocation = std::make_shared<Allocation>();
  auto count = [allocation, file_size](const Window& window, const FileRange&) {
    for (size_t i = 0; i < window.outcomes.size(); ++i) {
      const ObjectOutcome& outcome = window.outcomes[i];
      if (!window.succeeded[i]) continue;
      const ObjectSpan& span = window.spans[i];
      const uint64_t most = WholeBlocks(span.object_offset, span.length);
      const uint64_t grown = outcome.grown_bytes.value_or(most);
      allocation->grown_bytes += grown;
      allocation->beyond_bytes += std::min(grown, BytesBehind(file_size, span, outcome.extents));
      uint64_t& used = allocation->used_bytes[outcome.osd];
      used = std::max(used, outcome.used_bytes);
      if (!outcome.extents.empty()) {
        allocation->kept.emplace_back(span.object_index, outcome.extents);
      }
    }
    return false;
  };
  auto done = [&io, target, allocation, callback = std::move(callback)](const Status& status) {
    if (status.ok()) return callback(std::move(*allocation));
    GiveBackObjects(io, target, *allocation, [status, callback] { callback(status); });
  };
  std::make_shared<Walk>(io, target, ObjectOp::Verb::kAllocate, count, done, zeros)
      ->Go(offset, offset + length);
}

void GiveBackObjects(ObjectIo& io, const FileTarget& target, const Allocation& allocation,
                     std::function<void()> done) {
  size_t count = 0;
  for (const auto& [index, extents] : allocation.kept) count += extents.size();
  if (count == 0) return done();
  const auto given = AfterAll(count, std::move(done));
  for (const auto& [index, extents] : allocation.kept) {
    for (const auto& [offset, length] : extents) {
      ObjectOp op = target.Op(index, offset, length);
      op.verb = ObjectOp::Verb::kGiveBack;
      op.write = true;
      op.abandoned = nullptr;  // what is kept goes back whoever was killed
      op.fenced = target.fenced;
      op.done = [given](const Result<ObjectOutcome>&) { given(); };
      io.Submit(std::move(op));
    }
  }
}

void FindInObjects(ObjectIo& io, const FileTarget& target, Wanted wanted, uint64_t offset,
                   uint64_t size, OffsetCallback callback) {
  auto found = std::make_shared<std::optional<uint64_t>>();
  auto reached = std::make_shared<uint64_t>(offset);  // all before it has been looked at
  auto visit = [wanted, found, reached](const Window& window, const FileRange& range) {
    // What was left out since the last window is a hole.
    if (wanted == Wanted::kHole && range.begin > *reached) {
      *found = *reached;
    } else {
      *found = Find(wanted, window.Data(), range);
    }
    *reached = range.end;
    return found->has_value();
  };
  auto done = [wanted, found, reached, size, callback = std::move(callback)](const Status& status) {
    if (!status.ok()) return callback(status);
    // At the end of the file there is always a hole.
    if (wanted == Wanted::kHole && !found->has_value()) *found = std::min(*reached, size);
    callback(*found);
  };
  std::make_shared<Walk>(io, target, ObjectOp::Verb::kExtents, visit, done)->Go(offset, size);
}

void CopyObjects(ObjectIo& io, const FileTarget& from, uint64_t from_offset, const FileTarget& to,
                 uint64_t to_offset, uint64_t length, CountCallback callback) {
  const std::vector<CopyPiece> pieces =
      PlanCopy(io, from, from_offset, to, to_offset, std::min(length, kCopyMost));
  if (pieces.empty()) return callback(uint64_t{0});
  auto gather = std::make_shared<CopyGather>();
  gather->missing = pieces.size();
  gather->callback = std::move(callback);
  for (const CopyPiece& piece : pieces) gather->total += piece.to.length;
  for (const CopyPiece& piece : pieces) {
    auto done = [gather](const Status& status) { gather->Arrived(status); };
    if (piece.together) {
      CopyInOsd(io, from, to, piece, done);
    } else {
      CopyHere(io, from, to, piece, done);
    }
  }
}

}  // namespace weir::client
