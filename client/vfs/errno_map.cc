#include "client/vfs/errno_map.h"

#include <cerrno>

namespace weir::client {

int KernelErrno(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kBusy:        // a peer that stayed overloaded beyond the timeout
    case ErrorCode::kAgain:       // EAGAIN would promise that poll() helps
    case ErrorCode::kStaleEpoch:  // likewise
    case ErrorCode::kBadMessage:
    case ErrorCode::kCancelled:  // the mount is going away
    case ErrorCode::kWrongCluster:
      return EIO;
    default:
      return ToErrno(status.code());
  }
}

}  // namespace weir::client
