#include "client/data/object_writer.h"

#include <mutex>

#include "common/base/crc32c.h"

namespace weir::client {
namespace {

struct WriteGather {
  std::mutex mutex;
  size_t missing = 0;
  uint64_t grown = 0;
  Status error;
  GrownCallback callback;

  void Arrived(const Result<ObjectOutcome>& result, uint64_t most) {
    {
      std::lock_guard lock(mutex);
      if (result.ok()) grown += result->grown_bytes.value_or(most);
      if (error.ok()) error = result.status();
      if (--missing > 0) return;
    }
    if (!error.ok()) return callback(error);
    callback(grown);
  }
};

ObjectOp WriteOp(const FileTarget& target, PreparedWrite::Part& part) {
  ObjectOp op = target.Op(part.span.object_index, part.span.object_offset, part.span.length);
  op.write = true;
  op.payload = std::move(part.payload);
  op.payload_crc = part.crc;
  op.fenced = target.fenced;
  return op;
}

}  // namespace

PreparedWrite PrepareWrite(const FileLayout& layout, uint64_t offset, const uint8_t* data,
                           uint64_t length) {
  PreparedWrite write;
  for (ObjectSpan& span : MapSpans(layout, offset, length)) {
    PreparedWrite::Part part;
    part.payload = Buffer::Aligned(span.length);
    uint8_t* to = part.payload.data();
    for (const ObjectExtent& piece : span.pieces) {
      part.crc = CopyCrc32c(to, data + (piece.file_offset - offset), piece.length, part.crc);
      to += piece.length;
    }
    part.span = std::move(span);
    write.parts.push_back(std::move(part));
  }
  return write;
}

PreparedWrite PrepareWrite(const FileLayout& layout, uint64_t offset, const Buffer& data) {
  std::vector<ObjectSpan> spans = MapSpans(layout, offset, data.size());
  if (data.borrowed() || spans.size() != 1)
    return PrepareWrite(layout, offset, data.data(), data.size());
  PreparedWrite write;
  write.parts.push_back({std::move(spans[0]), data, Crc32c(data.data(), data.size())});
  return write;
}

void WriteObjects(ObjectIo& io, const FileTarget& target, PreparedWrite write,
                  GrownCallback callback) {
  if (write.parts.empty()) return callback(uint64_t{0});
  auto gather = std::make_shared<WriteGather>();
  gather->missing = write.parts.size();
  gather->callback = std::move(callback);
  for (PreparedWrite::Part& part : write.parts) {
    ObjectOp op = WriteOp(target, part);
    const uint64_t most = WholeBlocks(op.offset, op.length);
    op.done = [gather, most](const Result<ObjectOutcome>& result) {
      gather->Arrived(result, most);
    };
    io.Submit(std::move(op));
  }
}

}  // namespace weir::client
