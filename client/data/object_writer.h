// Writes a range of a file: one request per object touched.
//
// Preparing copies the caller's bytes once, in cache-sized pieces together with their checksum,
// into block-aligned buffers; sending shares those. Callers keep overlapping writes apart. Threads:
// any; the callback runs on an RPC thread. Errors: the first that any object gave.
#pragma once

#include <functional>
#include <vector>

#include "client/data/file_target.h"
#include "client/data/object_span.h"
#include "client/remote/object_io.h"
#include "common/base/buffer.h"

namespace weir::client {

using WriteCallback = std::function<void(Status)>;
// How many bytes of blocks take space now that did not before; more where that is not known.
using GrownCallback = std::function<void(Result<uint64_t>)>;

struct PreparedWrite {
  struct Part {
    ObjectSpan span;
    Buffer payload;
    uint32_t crc = 0;
  };
  std::vector<Part> parts;

  [[nodiscard]] uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Part& part : parts) sum += part.span.length;
    return sum;
  }
};

PreparedWrite PrepareWrite(const FileLayout& layout, uint64_t offset, const uint8_t* data,
                           uint64_t length);
// The same from a buffer that nobody changes any more: no copy where one object takes it whole.
PreparedWrite PrepareWrite(const FileLayout& layout, uint64_t offset, const Buffer& data);

void WriteObjects(ObjectIo& io, const FileTarget& target, PreparedWrite write,
                  GrownCallback callback);

}  // namespace weir::client
