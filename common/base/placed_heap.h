// PlacedHeap: items ordered by a key, smallest first; each item knows its place, so moving or
// removing one is O(log n). Ties go to the earlier sequence, so that a run repeats bit for bit.
//
// Four children each: telling an item its new place is a write to memory that is likely in no
// cache, and with four there are half as many of them on the way as with two.
//
// Place::Of(item) is where the item keeps its place in this heap, a uint32_t that is kNowhere
// while it is in none. Ownership: none. Threads: the owner's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/rank.h"

namespace weir {

template <typename Item, typename Key, typename Place>
class PlacedHeap {
 public:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  // The smallest, and its key. Require: not empty.
  [[nodiscard]] Item* Top() const { return entries_.front().item; }
  [[nodiscard]] Key TopKey() const { return Ranked<Key>::Back(entries_.front().rank.value); }
  [[nodiscard]] static bool Contains(const Item& item) {
    return Place::Of(const_cast<Item&>(item)) != kNowhere;  // NOLINT: it is only read
  }

  // Inserts the item or moves it to its new key.
  void Put(Item* item, Key key, uint64_t sequence) {
    uint32_t place = Place::Of(*item);
    if (place == kNowhere) {
      place = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
    }
    Settle(place, {{Ranked<Key>::From(key), sequence}, item});
  }

  // No effect on an item that is not in the heap.
  void Remove(Item* item) {
    const uint32_t place = Place::Of(*item);
    if (place == kNowhere) return;
    Place::Of(*item) = kNowhere;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.item != item) Settle(place, last);
  }

 private:
  static constexpr uint32_t kChildren = 4;

  struct Entry {
    Rank rank;
    Item* item = nullptr;
  };

  void Set(uint32_t place, const Entry& entry) {
    entries_[place] = entry;
    Place::Of(*entry.item) = place;
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

}  // namespace weir
