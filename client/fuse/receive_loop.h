// Takes the kernel's requests off a session and hands them to libfuse, which calls our operations.
#pragma once

#include <cstdint>

struct fuse_session;

namespace weir::client {

// Serves with so many threads, this one among them, until the file system is unmounted: 0. Else
// the first error, negative.
int ServeSession(fuse_session* session, uint32_t threads);

}  // namespace weir::client
