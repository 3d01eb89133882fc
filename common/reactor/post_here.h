// Loop::Post, for whoever runs on a reactor's thread without knowing which.
#pragma once

#include "common/reactor/loop.h"

namespace weir {

// Posts `task` to the reactor whose thread calls: it runs when the reactor has read what has come
// by now, and what it produces leaves in the same turn. False, with nothing done: no reactor's
// thread calls.
[[nodiscard]] bool PostHere(Loop::Task task);

}  // namespace weir
