#include "client/data/object_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "client/data/object_span.h"

namespace weir::client {
namespace {

// Collects the replies of one read; the last one answers.
struct ReadGather {
  std::mutex mutex;
  std::vector<ObjectSpan> spans;
  std::vector<Buffer> payloads;
  size_t missing = 0;
  Status error;
  ReadCallback callback;

  void Arrived(size_t index, Result<ObjectOutcome> result) {
    {
      std::lock_guard lock(mutex);
      if (result.ok()) {
        payloads[index] = std::move(result->payload);
      } else if (error.ok()) {
        error = result.status();
      }
      if (--missing > 0) return;
    }
    if (!error.ok()) return callback(error);
    callback(Assemble());
  }

  Segments Assemble() const {
    std::map<uint64_t, std::pair<const ObjectExtent*, size_t>> in_file_order;
    for (size_t i = 0; i < spans.size(); ++i) {
      for (const ObjectExtent& piece : spans[i].pieces) {
        in_file_order[piece.file_offset] = {&piece, i};
      }
    }
    Segments segments;
    for (const auto& [offset, piece] : in_file_order) {
      const ObjectSpan& span = spans[piece.second];
      const Buffer& payload = payloads[piece.second];
      const uint64_t begin =
          std::min(piece.first->object_offset - span.object_offset, uint64_t{payload.size()});
      const uint64_t have = std::min(piece.first->length, payload.size() - begin);
      if (have > 0) segments.push_back(payload.Slice(begin, have));
      AppendZeros(piece.first->length - have, &segments);
    }
    return segments;
  }
};

ObjectOp ReadOp(const FileTarget& target, const ObjectSpan& span) {
  return target.Op(span.object_index, span.object_offset, span.length);
}

void ReadOne(ObjectIo& io, ObjectOp op, ReadCallback callback) {
  const uint64_t length = op.length;
  op.done = [length, callback = std::move(callback)](Result<ObjectOutcome> result) {
    if (!result.ok()) return callback(result.status());
    Segments segments;
    const uint64_t have = result->payload.size();
    if (have > 0) segments.push_back(std::move(result->payload));
    AppendZeros(length - have, &segments);
    callback(std::move(segments));
  };
  io.Submit(std::move(op));
}

}  // namespace

void ReadObjects(ObjectIo& io, const FileTarget& target, uint64_t offset, uint64_t length,
                 ReadCallback callback) {
  std::vector<ObjectSpan> spans = MapSpans(target.layout, offset, length);
  if (spans.empty()) return callback(Segments{});
  if (spans.size() == 1) return ReadOne(io, ReadOp(target, spans[0]), std::move(callback));
  auto gather = std::make_shared<ReadGather>();
  gather->spans = std::move(spans);
  gather->missing = gather->spans.size();
  gather->payloads.resize(gather->spans.size());
  gather->callback = std::move(callback);
  for (size_t i = 0; i < gather->payloads.size(); ++i) {
    ObjectOp op = ReadOp(target, gather->spans[i]);
    op.done = [gather, i](Result<ObjectOutcome> result) { gather->Arrived(i, std::move(result)); };
    io.Submit(std::move(op));
  }
}

void AppendZeros(uint64_t length, Segments* segments) {
  static const Buffer zeros = Buffer::AlignedZeros(128 << 10);
  while (length > 0) {
    const uint64_t part = std::min<uint64_t>(length, zeros.size());
    segments->push_back(zeros.Slice(0, part));
    length -= part;
  }
}

uint64_t TotalSize(const Segments& segments) {
  uint64_t total = 0;
  for (const Buffer& segment : segments) total += segment.size();
  return total;
}

void CopyTo(const Segments& segments, uint8_t* to) {
  for (const Buffer& segment : segments) {
    if (!segment.empty()) std::memcpy(to, segment.data(), segment.size());
    to += segment.size();
  }
}

Segments SliceOf(const Segments& segments, uint64_t offset, uint64_t length) {
  Segments out;
  for (const Buffer& segment : segments) {
    if (length == 0) break;
    if (offset >= segment.size()) {
      offset -= segment.size();
      continue;
    }
    const uint64_t part = std::min(length, segment.size() - offset);
    out.push_back(segment.Slice(offset, part));
    length -= part;
    offset = 0;
  }
  WEIR_CHECK(length == 0, "slice outside the segments");
  return out;
}

}  // namespace weir::client
