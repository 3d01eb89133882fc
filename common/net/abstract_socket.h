// Unix sockets with names of the abstract kind, "@NAME": they live in a network namespace, no file
// stands for them, and they go with who listens. Anybody may take a free name.
// Linux only. Threads: any.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <string_view>

#include "common/base/result.h"

namespace weir::net {

// A stream socket that does not block; whoever asked closes it.
// kBusy: the name is taken.
Result<int> ListenAt(std::string_view name);
// kUnreachable: nobody listens there, or neither a system user nor `user`, ourselves unless
// somebody else is named. kBusy: too many dial.
Result<int> DialOurs(std::string_view name, uid_t user = geteuid());

}  // namespace weir::net
