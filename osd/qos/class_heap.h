// ClassHeap: class queues ordered by a key, smallest first; each queue knows its place, so moving
// or removing one is O(log n). Ties go to the earlier head, so that a run repeats bit for bit.
//
// Four children each: telling a queue its new place is a write to memory that is likely in no
// cache, and with four there are half as many of them on the way as with two.
//
// kSlot names which of the queue's places this heap uses (see ClassQueue::heap_place).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "osd/qos/class_queue.h"
#include "osd/qos/rank.h"

namespace weir::osd::qos {

template <typename Key, HeapSlot kSlot>
class ClassHeap {
 public:
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  // The smallest, and its key. Require: not empty.
  [[nodiscard]] ClassQueue* Top() const { return entries_.front().queue; }
  [[nodiscard]] Key TopKey() const { return Ranked<Key>::Back(entries_.front().rank.value); }
  [[nodiscard]] static bool Contains(const ClassQueue& queue) { return Place(queue) != kNowhere; }

  // Inserts the queue or moves it to its new key.
  void Put(ClassQueue* queue, Key key, uint64_t sequence) {
    uint32_t place = Place(*queue);
    if (place == kNowhere) {
      place = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
    }
    Settle(place, {{Ranked<Key>::From(key), sequence}, queue});
  }

  // No effect on a queue that is not in the heap.
  void Remove(ClassQueue* queue) {
    const uint32_t place = Place(*queue);
    if (place == kNowhere) return;
    Place(*queue) = kNowhere;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.queue != queue) Settle(place, last);
  }

 private:
  static constexpr uint32_t kNowhere = ClassQueue::kNowhere;
  static constexpr uint32_t kChildren = 4;

  struct Entry {
    Rank rank;
    ClassQueue* queue = nullptr;
  };

  static uint32_t& Place(ClassQueue& queue) { return queue.heap_place[static_cast<size_t>(kSlot)]; }
  static uint32_t Place(const ClassQueue& queue) {
    return queue.heap_place[static_cast<size_t>(kSlot)];
  }
  void Set(uint32_t place, const Entry& entry) {
    entries_[place] = entry;
    Place(*entry.queue) = place;
  }
  // The smallest of the children from `begin` on.
  [[nodiscard]] uint32_t LeastChild(uint32_t begin) const {
    const uint32_t end = std::min(begin + kChildren, static_cast<uint32_t>(entries_.size()));
    uint32_t least = begin;
    Rank rank = entries_[begin].rank;
    for (uint32_t child = begin + 1; child < end; ++child) {
      const Rank other = entries_[child].rank;
      const bool less = other < rank;
      least = less ? child : least;
      rank = less ? other : rank;
    }
    return least;
  }
  // Puts the entry where it belongs, from the free `place` on.
  void Settle(uint32_t place, const Entry& entry) {
    while (place > 0) {
      const uint32_t parent = (place - 1) / kChildren;
      if (!(entry.rank < entries_[parent].rank)) break;
      Set(place, entries_[parent]);
      place = parent;
    }
    for (uint32_t begin = kChildren * place + 1; begin < entries_.size();
         begin = kChildren * place + 1) {
      const uint32_t child = LeastChild(begin);
      if (!(entries_[child].rank < entry.rank)) break;
      Set(place, entries_[child]);
      place = child;
    }
    Set(place, entry);
  }

  std::vector<Entry> entries_;
};

}  // namespace weir::osd::qos
