// The simulator's virtual time: the queue that the disk models run on.
#pragma once

#include "common/disk/model/event_queue.h"

namespace weir::sim {
using model::EventQueue;
}
