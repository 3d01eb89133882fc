// ClassHeap: class queues ordered by a key, smallest first; each queue knows its place, so moving
// or removing one is O(log n). Ties go to the earlier head, so that a run repeats bit for bit.
//
// kSlot names which of the queue's places this heap uses (see ClassQueue::heap_place).
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/check.h"
#include "osd/qos/class_queue.h"

namespace weir::osd::qos {

template <typename Key, HeapSlot kSlot>
class ClassHeap {
 public:
  struct Entry {
    Key key;
    uint64_t sequence;
    ClassQueue* queue;
  };

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] const Entry& Top() const { return entries_.front(); }
  [[nodiscard]] static bool Contains(const ClassQueue& queue) { return Place(queue) != kNowhere; }

  // Inserts the queue or moves it to its new key.
  void Put(ClassQueue* queue, Key key, uint64_t sequence) {
    if (Place(*queue) == kNowhere) {
      Place(*queue) = static_cast<uint32_t>(entries_.size());
      entries_.push_back({key, sequence, queue});
    } else {
      Entry& entry = entries_[Place(*queue)];
      entry.key = key;
      entry.sequence = sequence;
    }
    Settle(Place(*queue));
  }

  // No effect on a queue that is not in the heap.
  void Remove(ClassQueue* queue) {
    const uint32_t place = Place(*queue);
    if (place == kNowhere) return;
    Place(*queue) = kNowhere;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.queue == queue) return;
    Set(place, last);
    Settle(place);
  }

 private:
  static constexpr uint32_t kNowhere = ClassQueue::kNowhere;

  static uint32_t& Place(ClassQueue& queue) { return queue.heap_place[static_cast<size_t>(kSlot)]; }
  static uint32_t Place(const ClassQueue& queue) {
    return queue.heap_place[static_cast<size_t>(kSlot)];
  }
  static bool Before(const Entry& a, const Entry& b) {
    return a.key < b.key || (a.key == b.key && a.sequence < b.sequence);
  }
  void Set(uint32_t place, const Entry& entry) {
    entries_[place] = entry;
    Place(*entry.queue) = place;
  }
  void Settle(uint32_t place) {
    const Entry entry = entries_[place];
    while (place > 0 && Before(entry, entries_[(place - 1) / 2])) {
      Set(place, entries_[(place - 1) / 2]);
      place = (place - 1) / 2;
    }
    const auto size = static_cast<uint32_t>(entries_.size());
    for (;;) {
      uint32_t child = 2 * place + 1;
      if (child >= size) break;
      if (child + 1 < size && Before(entries_[child + 1], entries_[child])) ++child;
      if (!Before(entries_[child], entry)) break;
      Set(place, entries_[child]);
      place = child;
    }
    Set(place, entry);
  }

  std::vector<Entry> entries_;
};

}  // namespace weir::osd::qos
