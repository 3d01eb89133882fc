#include "osd/qos/surplus/fcfs.h"

namespace weir::osd::qos {

void Fcfs::Arrived(Request* /*request*/) {}

void Fcfs::Offer(ClassQueue* queue) {
  const uint64_t sequence = queue->requests.front()->sequence;
  by_arrival_.Put(queue, sequence, sequence);
}

ClassQueue* Fcfs::Pick() {
  return by_arrival_.empty() ? nullptr : by_arrival_.Top();
}

void Fcfs::Released(ClassQueue* /*queue*/, bool /*guaranteed*/) {}

}  // namespace weir::osd::qos
