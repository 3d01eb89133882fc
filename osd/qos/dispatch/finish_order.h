// FinishOrder: requests by finish time, and the latest start time of the first one (Stonehenge
// eq. 4):
//
//   LST_Q = FT_Q - s,  LST_i = min(LST_{i+1}, FT_i) - s     i.e. LST_1 = min over i of FT_(i) - i*s
//
// s = 1/IOPSmax is what one request takes at best. If the disk serves anything else until LST_1 it
// can still meet every finish time by serving only this order at full speed from then on. Example:
// s = 10, FT = 50, 52, 100: LST = 32, 42, 90.
//
// A tree whose nodes know, for what is below them, how many they are and the least FT_(i) - i*s
// with ranks counted inside: insert, remove and LST are O(log n), and repeat bit for bit. Units:
// nanoseconds. Threads: the scheduler's owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/base/check.h"
#include "osd/qos/dispatch/request_tree.h"
#include "osd/qos/request.h"

namespace weir::osd::qos {

class FinishOrder {
 public:
  static constexpr int64_t kNever = INT64_MAX;  // finish time of what has no deadline

  explicit FinishOrder(Duration service) : tree_(service.count()) {}

  // Orders by request->finish_time, then by sequence; both stay as they are while it is here.
  void Add(Request* request) { tree_.Insert(KeyOf(*request), request); }
  void Remove(const Request& request) {
    const Request* removed = tree_.Remove(KeyOf(request));
    WEIR_CHECK(removed == &request, "the request is in the order");
  }

  [[nodiscard]] bool empty() const { return tree_.empty(); }
  [[nodiscard]] size_t size() const { return tree_.size(); }
  // The request that finishes first. Requires: not empty.
  [[nodiscard]] Request* First() const { return tree_.First(); }
  // LST_1; kNever when nothing here has a deadline.
  [[nodiscard]] int64_t LatestStart() { return tree_.summary().least; }

  // s; O(n) if it differs.
  void SetService(Duration service) {
    if (service.count() != tree_.parameter()) tree_.SetParameter(service.count());
  }
  [[nodiscard]] Duration service() const { return Duration(tree_.parameter()); }

 private:
  struct Summary {
    int64_t count = 0;
    int64_t least = kNever;

    static int64_t FinishOf(const TreeKey& key) { return Ranked<int64_t>::Back(key.value); }
    // The keys ascend, so what has no deadline is last, and too late to be the least.
    static Summary Of(std::span<const TreeKey> keys, int64_t service) {
      const auto count = static_cast<int64_t>(keys.size());
      if (count == 0 || FinishOf(keys[0]) == kNever) return {count, kNever};
      int64_t least = kNever;
      for (int64_t i = 0; i < count; ++i) {
        least = std::min(least, FinishOf(keys[i]) - (i + 1) * service);
      }
      return {count, least};
    }
    void Append(const Summary& behind, int64_t service) {
      if (behind.least != kNever) least = std::min(least, behind.least - count * service);
      count += behind.count;
    }
  };
  static TreeKey KeyOf(const Request& request) {
    return {Ranked<TimePoint>::From(request.finish_time), request.sequence};
  }

  RequestTree<Request*, Summary> tree_;
};

}  // namespace weir::osd::qos
