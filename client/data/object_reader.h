// Reads a range of a file: one request per object touched, the replies handed on uncopied.
//
// Holes, objects that do not exist and short objects read as zeros.
// Threads: any; the callback runs on an RPC thread. Errors: the first that any object gave.
#pragma once

#include <functional>
#include <vector>

#include "client/data/file_target.h"
#include "client/remote/object_io.h"
#include "common/base/buffer.h"

namespace weir::client {

// The bytes in file order; segments share the received payloads or a page of zeros.
using Segments = std::vector<Buffer>;
using ReadCallback = std::function<void(Result<Segments>)>;

// Requires: the range lies within the file.
void ReadObjects(ObjectIo& io, const FileTarget& target, uint64_t offset, uint64_t length,
                 ReadCallback callback);

// `length` bytes of zeros, as segments that share one buffer.
void AppendZeros(uint64_t length, Segments* segments);
uint64_t TotalSize(const Segments& segments);
// Copies them one after the other to `to`.
void CopyTo(const Segments& segments, uint8_t* to);
// The part [offset, offset + length) of the segments. Requires: within them.
Segments SliceOf(const Segments& segments, uint64_t offset, uint64_t length);

}  // namespace weir::client
