// Whether an MDS knows of users' parts of a promise. One of a version before does not see `user` in
// a request: it would promise a user's part to the class instead of what that has, or take all of
// it away. So it is asked first what it would do, or what it has. Pure.
#pragma once

#include <cstdint>

#include "common/base/result.h"
#include "common/wire/map.pb.h"

namespace weir::osdctl {

// `info`: the class as the MDS says it would be with the part. kNotSupported: it has not seen whose
// part it is.
Status CheckPartIsSeen(const wire::ClassInfo& info, uint32_t uid, uint64_t bytes_per_s);
// `info`: the class as it is. kNotFound: nobody has promised this user anything, be it that the MDS
// cannot.
Status CheckHasPart(const wire::ClassInfo& info, uint32_t uid);

}  // namespace weir::osdctl
