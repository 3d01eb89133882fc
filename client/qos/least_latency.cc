#include "client/qos/least_latency.h"

#include <algorithm>

namespace weir::client {

void LeastLatency::Saw(Duration latency, TimePoint now) {
  Turn(now);
  Slot& slot = SlotAt(slot_);
  slot.least = std::min(slot.least, std::max(latency, Duration(0)));
  all_.least = std::min(all_.least, slot.least);
  if (all_.moments > 0 && now - last_ < kApart) return;
  if (all_.moments == 0) since_ = now;
  last_ = now;
  ++slot.moments;
  ++all_.moments;
}

Duration LeastLatency::At(TimePoint now) {
  Turn(now);
  const bool known = all_.moments >= kEnough && now - since_ >= kKnown;
  return known ? all_.least : Duration(0);
}

void LeastLatency::Turn(TimePoint now) {
  const int64_t slot = now.ns / kSlot.count();
  if (slot <= slot_) return;
  for (int64_t i = std::max(slot_ + 1, slot - kSlots + 1); i <= slot; ++i) SlotAt(i) = {};
  slot_ = slot;
  all_ = {};
  for (const Slot& one : slots_) {
    all_.least = std::min(all_.least, one.least);
    all_.moments += one.moments;
  }
}

}  // namespace weir::client
