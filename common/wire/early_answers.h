// EarlyAnswerOf: by its method, whether the MDS may answer a request as soon as its place in the
// order is certain (wire::Ordered): what the MDS goes by, and by which a mount keeps what it may
// have to repeat. What else speaks against it in a request is the MDS's to judge.
#pragma once

#include <cstdint>

#include "common/wire/mds.pb.h"

namespace weir::wire {

enum class EarlyAnswer {
  kNever,
  kAlone,   // only where no other mount can be: such a mount lives and dies with its MDS
  kAlways,  // a mount that may outlive its MDS keeps the request until it is durable
};

constexpr EarlyAnswer EarlyAnswerOf(uint32_t method) {
  switch (method) {
    case MDS_CREATE:
    case MDS_TMPFILE:
    case MDS_MKNOD:
    case MDS_LINK:
    case MDS_UNLINK:
    case MDS_RMDIR:
    case MDS_RENAME:
    case MDS_SETXATTR:
    case MDS_REMOVEXATTR:
      return EarlyAnswer::kAlways;
    // What is closed on one of several mounts is there for the others, whatever happens; and what
    // mounts of a cluster set they tell with the data, most often.
    case MDS_SETATTR:
    case MDS_WROTE:
      return EarlyAnswer::kAlone;
    default:
      return EarlyAnswer::kNever;
  }
}

}  // namespace weir::wire
