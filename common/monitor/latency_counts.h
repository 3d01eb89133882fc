// LatencyCounts: how many requests took how long, as OSDs report it; kept sparse. Two of them from
// one OSD give the latencies in between; several added up give those of a class on all its OSDs.
//
// Units:   microseconds. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>

namespace weir::wire {
class ClassStats;
}

namespace weir::monitor {

struct LatencyCounts {
  std::map<uint64_t, uint64_t> by_largest;  // largest latency of a bucket -> requests in it
  uint64_t sum_us = 0;

  [[nodiscard]] uint64_t count() const;
  // The bucket end that at least `fraction` (0..1) of the requests do not exceed; 0 without any.
  [[nodiscard]] uint64_t Quantile(double fraction) const;
  // How many took at most that long.
  [[nodiscard]] uint64_t AtMost(uint64_t micros) const;
  void Add(const LatencyCounts& other);
  // What was counted since `before`. All of it when the counters began anew in between.
  [[nodiscard]] LatencyCounts Since(const LatencyCounts& before) const;
};

LatencyCounts LatenciesOf(const wire::ClassStats& stats);

}  // namespace weir::monitor
