// FinishOrder: requests by finish time, and the latest start time of the first one (Stonehenge
// eq. 4):
//
//   LST_Q = FT_Q - s,  LST_i = min(LST_{i+1}, FT_i) - s     i.e.  LST_1 = min over i of (FT_(i) -
//   i*s)
//
// s = 1/IOPSmax is what one request takes at best. If the disk serves anything else until LST_1 it
// can still meet every finish time by serving only this order at full speed from then on. Example:
// s = 10, FT = 50, 52, 100: LST = 32, 42, 90.
//
// A treap whose nodes know, for their subtree, how many they are and the least FT_(i) - i*s with
// ranks counted inside it: insert, remove and LST are O(log n), and repeat bit for bit.
// Units: nanoseconds. Threads: the scheduler's owner.
#pragma once

#include <cstdint>
#include <vector>

#include "osd/qos/scheduler.h"

namespace weir::osd::qos {

class FinishOrder {
 public:
  static constexpr int64_t kNever = INT64_MAX;  // finish time of what has no deadline

  explicit FinishOrder(Duration service) : service_(service.count()) {}

  // Orders by request->finish_time, then by sequence; both stay as they are while it is here.
  void Add(Request* request);
  void Remove(const Request& request);

  [[nodiscard]] bool empty() const { return root_ == kNone; }
  [[nodiscard]] size_t size() const { return root_ == kNone ? 0 : nodes_[root_].count; }
  // The request that finishes first. Requires: not empty.
  [[nodiscard]] Request* First() const;
  // LST_1; kNever when nothing here has a deadline.
  [[nodiscard]] int64_t LatestStart() const {
    return root_ == kNone ? kNever : nodes_[root_].least;
  }

  // s; O(n) if it differs.
  void SetService(Duration service);
  [[nodiscard]] Duration service() const { return Duration(service_); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Node {
    int64_t finish = 0;
    uint64_t sequence = 0;
    Request* request = nullptr;
    uint32_t left = kNone;
    uint32_t right = kNone;
    uint32_t priority = 0;
    uint32_t count = 1;
    int64_t least = 0;
  };

  [[nodiscard]] bool Before(const Node& node, int64_t finish, uint64_t sequence) const {
    return node.finish < finish || (node.finish == finish && node.sequence < sequence);
  }
  [[nodiscard]] int64_t Earlier(int64_t finish, uint32_t ranks) const {
    return finish == kNever ? kNever : finish - static_cast<int64_t>(ranks) * service_;
  }
  [[nodiscard]] uint32_t CountOf(uint32_t node) const {
    return node == kNone ? 0 : nodes_[node].count;
  }
  void Update(uint32_t node);
  void UpdateAll(uint32_t node);
  // Everything before the key to `left`, the rest to `right`.
  void Split(uint32_t node, int64_t finish, uint64_t sequence, uint32_t* left, uint32_t* right);
  uint32_t Merge(uint32_t left, uint32_t right);

  int64_t service_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> free_;
  uint32_t root_ = kNone;
};

}  // namespace weir::osd::qos
