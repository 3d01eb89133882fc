// ClassHeap: class queues ordered by a key (common/base/placed_heap.h).
//
// kSlot names which of the queue's places this heap uses (see ClassQueue::heap_place).
#pragma once

#include "common/base/placed_heap.h"
#include "osd/qos/class_queue.h"

namespace weir::osd::qos {

template <HeapSlot kSlot>
struct ClassPlace {
  static uint32_t& Of(ClassQueue& queue) { return queue.heap_place[static_cast<size_t>(kSlot)]; }
};

template <typename Key, HeapSlot kSlot>
using ClassHeap = PlacedHeap<ClassQueue, Key, ClassPlace<kSlot>>;

}  // namespace weir::osd::qos
