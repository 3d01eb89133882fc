#include "osd/qos/class_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>

namespace weir::osd::qos {
namespace {

// Lines of memory that these fields lie in.
template <typename... Fields>
size_t LinesOf(const Fields&... fields) {
  std::set<uintptr_t> lines;
  const auto add = [&](const auto& field) {
    const auto first = reinterpret_cast<uintptr_t>(&field);
    for (size_t i = 0; i < sizeof(field); ++i) lines.insert((first + i) / kCacheLine);
  };
  (add(fields), ...);
  return lines.size();
}

// Goal: with thousands of classes a decision brings in few lines of memory. Prevents: a field
// put where there was room, which makes a step touch one line more.
TEST(ClassQueueTest, WhatAStepTouchesLiesInOneLine) {
  const ClassQueue q;
  EXPECT_EQ(
      LinesOf(q.requests, q.released, q.under_way, q.device_ops, q.device_bytes, q.landed_bytes,
              q.landed_ops, q.held, q.has_demand, q.promise_total, q.limit_total),
      1u);
  EXPECT_EQ(LinesOf(q.heap_place, q.first_sequence, q.largest_tokens, q.ceiling, q.transactions),
            1u);
  EXPECT_EQ(LinesOf(q.wait.since, q.wait.released_before, q.wait.sums.turn_ns,
                    q.wait.sums.turn_own_bytes, q.wait.sums.turn_others_bytes,
                    q.wait.sums.device_ns, q.wait.sums.active_ns, q.wait.sums.limited_ns),
            1u);
  EXPECT_EQ(LinesOf(q.second_bytes, q.period_bytes, q.second_ops, q.contract.clock,
                    q.contract.disk_bound, q.contract.requests, q.contract.second_done,
                    q.contract.second_missed, q.contract.seconds, q.contract.latency_bound,
                    q.contract.counts_rate, q.contract.active),
            1u);
  EXPECT_EQ(LinesOf(q.promised, q.promised_iops, q.bound_iops, q.finish_rate, q.finish_clock,
                    q.unit_tokens, q.time_share, q.more),
            1u);
  EXPECT_EQ(LinesOf(q.leaf), 1u);
  EXPECT_EQ(LinesOf(q.finish_tag, q.owed, q.owed_after_head, q.idle_since, q.returned_at, q.flows),
            1u);
  EXPECT_EQ(LinesOf(q.disk.known, q.disk.offered, q.disk.parked, q.disk.filed, q.disk.clock,
                    q.disk.estimate, q.disk.next_lba, q.disk.last_turn, q.disk.missed,
                    q.disk.first_on_time, q.disk.late),
            1u);
  EXPECT_EQ(LinesOf(q.counters.id, q.counters.served_ops, q.counters.served_bytes,
                    q.counters.guaranteed_bytes, q.counters.surplus_bytes, q.counters.arrived_bytes,
                    q.counters.queued_ops, q.counters.queued_bytes),
            1u);
  EXPECT_EQ(LinesOf(q.spec.weight, q.spec.min_weight), 1u);
  EXPECT_EQ(LinesOf(q.spec.disk), 1u);
}

TEST(ClassQueueTest, ARequestIsFourLines) {
  const std::array<Request, 2> requests;
  EXPECT_EQ(LinesOf(requests[0]), 4u);
  EXPECT_EQ(LinesOf(requests[1]), 4u);
  const Request& r = requests[0];
  EXPECT_EQ(LinesOf(r.class_id, r.bytes, r.lba, r.op, r.stage, r.sequence, r.next), 1u);
}

}  // namespace
}  // namespace weir::osd::qos
