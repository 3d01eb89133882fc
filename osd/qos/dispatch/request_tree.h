// RequestTree: waiting requests in the order of a number (an address, a finish time), equal ones by
// sequence. A B+ tree: find, insert and remove are O(log n), a node is a few neighbouring cache
// lines, and a tree of up to kFanout requests is one sorted array.
//
// Item     what a request carries here; trivially copyable.
// Summary  what each node knows about all requests below it, so that questions about the whole are
//          cheap: Summary::Of(keys, parameter) of some neighbours, and a.Append(b, parameter) of a
//          range and the one right behind it. `parameter` is a number that all of them depend on.
//          Made when somebody asks, of the nodes that changed since: what is never asked costs
//          nothing, and one question pays once for all that came and went before it.
//
// Every node but the root is at least a quarter full. Nodes come from pools that only grow, so that
// requests come and go without allocations. Nothing is random: runs repeat bit for bit.
// Threads: the scheduler's owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "common/base/rank.h"

namespace weir::osd::qos {

using TreeKey = Rank;

// For trees that nobody asks about the whole.
struct NoSummary {
  static NoSummary Of(std::span<const TreeKey> /*keys*/, int64_t /*parameter*/) { return {}; }
  void Append(const NoSummary& /*behind*/, int64_t /*parameter*/) {}
};

template <typename Item, typename Summary = NoSummary>
class RequestTree {
 public:
  static constexpr uint32_t kFanout = 32;
  static constexpr uint32_t kLeast = kFanout / 4;

  explicit RequestTree(int64_t parameter = 0) : parameter_(parameter), root_(leaves_.Allocate()) {}

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  // Of all requests; Summary{} when there is none. O(log n) for each change since the last one.
  [[nodiscard]] const Summary& summary() {
    if (stale_) summary_ = SummaryOf(root_, height_);
    stale_ = false;
    return summary_;
  }
  [[nodiscard]] int64_t parameter() const { return parameter_; }
  // O(n).
  void SetParameter(int64_t parameter) {
    parameter_ = parameter;
    MarkAllBelow(root_, height_);
    stale_ = true;
  }

  // Requires: no request with this key is here.
  void Insert(const TreeKey& key, const Item& item) {
    const uint32_t right = InsertBelow(root_, height_, key, item);
    if (right != kNone) {
      const uint32_t top = inners_.Allocate();
      Inner& node = inners_[top];
      node.Insert(0, KeyOf(root_, height_), {root_});
      node.Insert(1, KeyOf(right, height_), {right});
      root_ = top;
      ++height_;
    }
    ++size_;
    stale_ = true;
  }
  // Requires: a request with this key is here. Returns its item.
  Item Remove(const TreeKey& key) {
    const Item item = RemoveBelow(root_, height_, key);
    if (height_ > 0 && inners_[root_].count == 1) {
      inners_.Free(root_);
      root_ = inners_[root_].entries[0].index;
      --height_;
    }
    --size_;
    stale_ = true;
    return item;
  }

  // The first request in order. Requires: not empty.
  [[nodiscard]] const Item& First() const { return FirstBelow(root_, height_); }
  // The first request with this key or a later one; null: there is none.
  [[nodiscard]] const Item* FirstFrom(const TreeKey& key) const {
    uint32_t index = root_;
    uint32_t behind = kNone;  // the subtree right behind the path, as far down as there is one
    uint32_t behind_level = 0;
    for (uint32_t level = height_; level > 0; --level) {
      const Inner& node = inners_[index];
      const uint32_t place = node.Covering(key);
      if (place + 1 < node.count) {
        behind = node.entries[place + 1].index;
        behind_level = level - 1;
      }
      index = node.entries[place].index;
    }
    const Leaf& leaf = leaves_[index];
    const uint32_t place = leaf.CountBefore(key);
    if (place < leaf.count) return &leaf.entries[place];
    return behind == kNone ? nullptr : &FirstBelow(behind, behind_level);
  }

  // Levels above the leaves, for tests: at most log(n) to the base of kLeast.
  [[nodiscard]] uint32_t height() const { return height_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Entry i of an inner node is a child with the keys from keys[i] up to keys[i + 1]. keys[i] is a
  // bound behind everything before it; its request may be gone. The very first child takes whatever
  // comes before its bound, so keys[0] is not asked.
  template <typename Entry>
  struct Node {
    uint32_t count = 0;
    std::array<TreeKey, kFanout> keys;
    std::array<Entry, kFanout> entries;

    // Both halve the range without a branch that depends on keys.
    [[nodiscard]] uint32_t CountBefore(const TreeKey& key) const {
      if (count == 0) return 0;
      uint32_t before = 0;
      for (uint32_t left = count; left > 1;) {
        const uint32_t half = left / 2;
        before += keys[before + half - 1] < key ? half : 0;
        left -= half;
      }
      return before + (keys[before] < key ? 1 : 0);
    }
    // The entry that covers the key.
    [[nodiscard]] uint32_t Covering(const TreeKey& key) const {
      uint32_t place = 0;
      for (uint32_t left = count; left > 1;) {
        const uint32_t half = left / 2;
        place += key < keys[place + half] ? 0 : half;
        left -= half;
      }
      return place;
    }
    void Insert(uint32_t place, const TreeKey& key, const Entry& entry) {
      MakeRoom(place, 1);
      keys[place] = key;
      entries[place] = entry;
    }
    void MakeRoom(uint32_t place, uint32_t room) {
      std::move_backward(keys.data() + place, keys.data() + count, keys.data() + count + room);
      std::move_backward(entries.data() + place, entries.data() + count,
                         entries.data() + count + room);
      count += room;
    }
    void Close(uint32_t place, uint32_t room) {
      std::move(keys.data() + place + room, keys.data() + count, keys.data() + place);
      std::move(entries.data() + place + room, entries.data() + count, entries.data() + place);
      count -= room;
    }
    // Copies `many` from a place of another node to a place here where there is room for them.
    void Copy(uint32_t to, const Node& other, uint32_t from, uint32_t many) {
      std::copy_n(other.keys.data() + from, many, keys.data() + to);
      std::copy_n(other.entries.data() + from, many, entries.data() + to);
    }
  };

  struct Child {
    uint32_t index = kNone;
    bool stale = true;  // the summary is of before something changed below
    Summary summary = {};
  };
  using Leaf = Node<Item>;
  using Inner = Node<Child>;

  // Nodes by number; a reference lasts until the next Allocate.
  template <typename T>
  class Pool {
   public:
    uint32_t Allocate() {
      if (free_.empty()) {
        nodes_.emplace_back();
        return static_cast<uint32_t>(nodes_.size() - 1);
      }
      const uint32_t index = free_.back();
      free_.pop_back();
      nodes_[index].count = 0;
      return index;
    }
    void Free(uint32_t index) { free_.push_back(index); }
    T& operator[](uint32_t index) { return nodes_[index]; }
    const T& operator[](uint32_t index) const { return nodes_[index]; }

   private:
    std::vector<T> nodes_;
    std::vector<uint32_t> free_;
  };

  [[nodiscard]] const Item& FirstBelow(uint32_t index, uint32_t level) const {
    for (; level > 0; --level) index = inners_[index].entries[0].index;
    return leaves_[index].entries[0];
  }
  [[nodiscard]] TreeKey KeyOf(uint32_t index, uint32_t level) const {
    return level == 0 ? leaves_[index].keys[0] : inners_[index].keys[0];
  }
  [[nodiscard]] std::span<Child> ChildrenOf(uint32_t inner) {
    return std::span(inners_[inner].entries).first(inners_[inner].count);
  }

  [[nodiscard]] Summary SummaryOf(uint32_t index, uint32_t level) {
    if (level == 0) {
      const Leaf& leaf = leaves_[index];
      return Summary::Of(std::span(leaf.keys).first(leaf.count), parameter_);
    }
    Summary all;
    for (Child& child : ChildrenOf(index)) {
      if (child.stale) child.summary = SummaryOf(child.index, level - 1);
      child.stale = false;
      all.Append(child.summary, parameter_);
    }
    return all;
  }

  void MarkAllBelow(uint32_t index, uint32_t level) {
    if (level == 0) return;
    for (Child& child : ChildrenOf(index)) {
      child.stale = true;
      MarkAllBelow(child.index, level - 1);
    }
  }

  // Both return the new right neighbour of node `index` if that was full, else kNone.
  uint32_t InsertBelow(uint32_t index, uint32_t level, const TreeKey& key, const Item& item) {
    if (level == 0) {
      return InsertInto(&leaves_, index, leaves_[index].CountBefore(key), key, item);
    }
    const uint32_t place = inners_[index].Covering(key);
    Child& child = inners_[index].entries[place];
    child.stale = true;
    const uint32_t right = InsertBelow(child.index, level - 1, key, item);
    if (right == kNone) return kNone;
    return InsertInto(&inners_, index, place + 1, KeyOf(right, level - 1), Child{right});
  }
  template <typename Entry>
  static uint32_t InsertInto(Pool<Node<Entry>>* pool, uint32_t index, uint32_t place,
                             const TreeKey& key, const Entry& entry) {
    if ((*pool)[index].count < kFanout) {
      (*pool)[index].Insert(place, key, entry);
      return kNone;
    }
    const uint32_t right = pool->Allocate();
    constexpr uint32_t kHalf = kFanout / 2;
    Share(&(*pool)[index], &(*pool)[right], kHalf);
    if (place <= kHalf) {
      (*pool)[index].Insert(place, key, entry);
    } else {
      (*pool)[right].Insert(place - kHalf, key, entry);
    }
    return right;
  }

  Item RemoveBelow(uint32_t index, uint32_t level, const TreeKey& key) {
    if (level == 0) {
      Leaf& leaf = leaves_[index];
      const uint32_t place = leaf.CountBefore(key);
      WEIR_CHECK(place < leaf.count && !(key < leaf.keys[place]), "the request is in the order");
      const Item item = leaf.entries[place];
      leaf.Close(place, 1);
      return item;
    }
    const uint32_t place = inners_[index].Covering(key);
    Child& child = inners_[index].entries[place];
    child.stale = true;
    const Item item = RemoveBelow(child.index, level - 1, key);
    const uint32_t left = level == 1 ? leaves_[child.index].count : inners_[child.index].count;
    if (left >= kLeast) return item;
    const uint32_t at = place == 0 ? 0 : place - 1;
    level == 1 ? Refill(&leaves_, &inners_[index], at) : Refill(&inners_, &inners_[index], at);
    return item;
  }
  // Entry `at` of an inner node, or the one behind it, has become too small: joins or evens them.
  template <typename T>
  static void Refill(Pool<T>* pool, Inner* parent, uint32_t at) {
    T* const left = &(*pool)[parent->entries[at].index];
    T* const right = &(*pool)[parent->entries[at + 1].index];
    const uint32_t all = left->count + right->count;
    const bool join = all <= kFanout;
    Share(left, right, join ? all : all / 2);
    parent->entries[at].stale = parent->entries[at + 1].stale = true;
    if (join) {
      pool->Free(parent->entries[at + 1].index);
      parent->Close(at + 1, 1);
    } else {
      parent->keys[at + 1] = right->keys[0];
    }
  }
  // Hands the entries of two neighbours out anew, the first `left_count` to the left one.
  template <typename T>
  static void Share(T* left, T* right, uint32_t left_count) {
    if (left->count > left_count) {
      const uint32_t many = left->count - left_count;
      right->MakeRoom(0, many);
      right->Copy(0, *left, left_count, many);
    } else {
      const uint32_t many = left_count - left->count;
      left->Copy(left->count, *right, 0, many);
      right->Close(0, many);
    }
    left->count = left_count;
  }

  int64_t parameter_;
  Pool<Leaf> leaves_;
  Pool<Inner> inners_;
  uint32_t root_;  // a leaf while height_ is 0
  uint32_t height_ = 0;
  size_t size_ = 0;
  bool stale_ = false;
  Summary summary_;
};

}  // namespace weir::osd::qos
