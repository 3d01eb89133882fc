// UserParts: which of the users that a class promises a part of its bandwidth are below it, so that
// what they ask for leaves this mount first. OSDs keep the promise (osd/qos/guarantee), but do not
// see what still stands in the queues of a mount, where users are equal.
//
// Each has a bucket of 100 ms over all OSDs, which one request may overdraw. Only classes that are
// shared between users (flow_kind.h) have parts.
//
// Pure. Threads: not safe; under the lock of its owner.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/base/time.h"
#include "common/qos/flow_order.h"
#include "common/qos/qos_config.h"

namespace weir::client {

class UserParts {
 public:
  static constexpr Duration kSaved = std::chrono::milliseconds(100);

  // What they are promised from now on, on each of `osds` OSDs or over all.
  void Set(const Reservation& reservation, size_t osds, TimePoint now);
  // The next of whoever waits in `flows` and is furthest below his part; null: nobody is.
  [[nodiscard]] FlowOrder::Item* Owed(const FlowOrder& flows, TimePoint now) const;
  // A request of a user (FlowKey) leaves.
  void Sent(uint64_t user, uint64_t bytes, TimePoint now);

 private:
  struct Part {
    double rate = 0;  // bytes per second
    double saved = 0;
    TimePoint as_of;
  };
  static double SavedAt(const Part& part, TimePoint now);

  std::unordered_map<uint64_t, Part> parts_;
};

}  // namespace weir::client
