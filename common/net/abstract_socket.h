// Unix sockets with names of the abstract kind, "@NAME": they live in a network namespace, no file
// stands for them, and they go with who listens. Anybody may take a free name.
// Linux only. Threads: any.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string_view>

#include "common/base/result.h"

namespace weir::net {

// A stream socket that does not block; whoever asked closes it.
// kBusy: the name is taken.
Result<int> ListenAt(std::string_view name);
// kUnreachable: nobody listens there whom `ours` accepts. kBusy: too many dial.
Result<int> Dial(std::string_view name, const std::function<bool(uid_t)>& ours);
// Ours are system users and ourselves.
Result<int> DialOurs(std::string_view name);

}  // namespace weir::net
