// Holes and copies of whole ranges of files, object by object: punch, allocate, find data or a
// hole, copy.
//
// A range may be as long as a file can be: objects are asked some at a time, and where an OSD says
// which of the inode's objects it has next, all that no OSD has are left out.
// Threads: any; callbacks run on RPC threads. Errors: the first that any object gave.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "client/data/object_writer.h"

namespace weir::client {

using CountCallback = std::function<void(Result<uint64_t>)>;
// The range reads as zeros afterwards. Answers how many bytes of space that freed.
void PunchObjects(ObjectIo& io, const FileTarget& target, uint64_t offset, uint64_t length,
                  CountCallback callback);

// OSDs keep space for the range; with `zeros` it reads as zeros afterwards.
struct Allocation {
  uint64_t grown_bytes = 0;              // blocks that took no space before
  uint64_t beyond_bytes = 0;             // of these: behind the end of the file, as it was known
  std::map<OsdId, uint64_t> used_bytes;  // of each OSD now
  std::vector<std::pair<uint64_t, ObjectOutcome::Extents>> kept;  // by object: nothing was before
};
using AllocationCallback = std::function<void(Result<Allocation>)>;
// All of it or nothing: what other objects kept newly before one of them had no room is given back.
void AllocateObjects(ObjectIo& io, const FileTarget& target, uint64_t offset, uint64_t length,
                     bool zeros, uint64_t file_size, AllocationCallback callback);
// Undoes it, as far as nothing was written there.
void GiveBackObjects(ObjectIo& io, const FileTarget& target, const Allocation& allocation,
                     std::function<void()> done);

enum class Wanted : uint8_t { kData, kHole };
using OffsetCallback = std::function<void(Result<std::optional<uint64_t>>)>;
// The first offset from `offset` on that is one, of a file of `size` bytes, behind whose end a hole
// begins. None: there is no data any more. Requires: offset < size.
void FindInObjects(ObjectIo& io, const FileTarget& target, Wanted wanted, uint64_t offset,
                   uint64_t size, OffsetCallback callback);

// How much one call of CopyObjects takes at most: in the OSDs, and through this mount's memory.
inline constexpr uint64_t kCopyMost = 64 << 20;
inline constexpr uint64_t kCopyMostHere = 8 << 20;
// Copies a range of one file into another, or into another place of the same: inside the OSD where
// both objects lie on one, else through this mount. Answers how much it was, from the start.
void CopyObjects(ObjectIo& io, const FileTarget& from, uint64_t from_offset, const FileTarget& to,
                 uint64_t to_offset, uint64_t length, CountCallback callback);

}  // namespace weir::client
