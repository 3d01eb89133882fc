// Whether data may be written beyond the end of a file whose class has a capacity, and how far.
#include <algorithm>

#include "common/placement/striper.h"
#include "mds/ns/class_space.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {
namespace {

// Granted beyond what is asked for, so that a writer asks once in a while only: as much as the file
// has already, but no large part of the room that the class has left for all.
constexpr uint64_t kAheadMax = 16 << 20;
constexpr uint64_t kAheadPart = 16;

uint64_t Ahead(uint64_t end, uint64_t room) {
  return std::min({end, kAheadMax, (room - end) / kAheadPart});
}

}  // namespace

Result<wire::GrowReply> Grow(Operation& op, const wire::GrowRequest& request) {
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(request.inode()));
  if (!inode.IsRegular()) return InodeError(ErrorCode::kInvalid, inode.id, "is no regular file");
  if (request.end() > kMaxFileSize) {
    return InodeError(ErrorCode::kFileTooBig, inode.id, "cannot grow beyond 1 EiB");
  }
  WEIR_ASSIGN_OR_RETURN(const Room room, RoomFor(op, inode, request.class_id(), request.end()));
  wire::GrowReply reply;
  reply.set_end(request.end());
  if (room.end == UINT64_MAX) return reply;  // it has lost its capacity meanwhile
  reply.set_end(request.end() + Ahead(request.end(), room.end));
  SizeGrants& grants = op.context.grants;
  grants.Allow(op.context.session, inode.id, room.class_id, reply.end());
  grants.Charged(inode.id, inode.rec.charged_class(), inode.rec.charged_bytes());
  return reply;
}

}  // namespace weir::mds
