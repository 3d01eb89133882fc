// ClassQueue: one class at one OSD: its spec, its waiting requests and what each box of the
// pipeline remembers about it. One struct; each field says which box writes it.
//
// With a thousand classes they do not fit the processor's caches, and what a decision costs is how
// many lines of memory it brings in. So fields are grouped by the steps that touch them, a line
// each; what few classes have is behind a pointer, and what only operators and timers look at comes
// last. tests/unit/osd/qos/class_queue_test.cc holds the groups together.
//
// Threads: the scheduler's owner. Ownership: the scheduler; boxes hold plain pointers, which they
// drop in Remove.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/qos/class_times.h"
#include "common/qos/flow_order.h"
#include "common/qos/qos_config.h"
#include "osd/qos/admission/service_monitor.h"
#include "osd/qos/guarantee/token_bucket.h"
#include "osd/qos/guarantee/transactions.h"
#include "osd/qos/request.h"
#include "osd/qos/request_list.h"
#include "osd/qos/surplus/disk_state.h"

namespace weir::osd::qos {

struct ClassCounters {
  ClassId id;
  uint64_t served_ops = 0;
  uint64_t served_bytes = 0;
  uint64_t guaranteed_bytes = 0;
  uint64_t surplus_bytes = 0;
  uint64_t arrived_bytes = 0;
  uint64_t queued_ops = 0;
  uint64_t queued_bytes = 0;
  uint64_t deadline_misses = 0;  // completed later than the class's latency bound
  // Seconds with demand in which served < promise - 2 %, in bytes and requests or in time of the
  // device, or the bound was missed too often.
  uint64_t violation_seconds = 0;
  OsdClassTimes times;  // without operations and bytes, which are above
};

// The heaps that a queue may stand in.
enum class HeapSlot : uint8_t {
  kOwnWaiting,
  kOwnReady,
  kSurplus,
  kLight,
  kCeiling,
  kSpare,
  kDue,
  kCount
};

// What control/contract_meter.h remembers about a class.
struct ContractState {
  struct Terms {
    ServiceContract service;
    Duration disk_bound{0};
    uint64_t rate = 0;
    uint64_t iops = 0;
    friend bool operator==(const Terms&, const Terms&) = default;
  };
  // With every completion.
  std::unique_ptr<DelayClock>
      clock;               // of a bound that is not a virtual disk's; null: there is none
  Duration disk_bound{0};  // as in the terms
  uint64_t requests = 0;   // done under these terms
  uint32_t second_done = 0;
  uint32_t second_missed = 0;
  uint32_t seconds = 0;        // in which any was done
  bool latency_bound = false;  // its bound needs more requests per second than it asks for
  bool counts_rate = false;    // it is part of Q_IOrate
  bool active = false;         // in this second

  double unit_bytes = 0;
  Terms terms;
};

// What control/wait_meter.h remembers about a class. One line with every change of a class that
// waits for its turn or is on the device.
struct WaitState {
  TimePoint since;               // the sums hold until then
  uint64_t released_before = 0;  // of all classes, by then
  OsdClassTimes sums;            // without operations and bytes, which are in ClassCounters
};

// Guarantee: the leaves besides the one in bytes, which few classes have (htb.h).
struct MoreLeaves {
  std::optional<TokenBucket> iops;       // promised, in parts of requests
  std::optional<TokenBucket> bound;      // the same for the latency bound
  std::optional<TokenBucket> time;       // microseconds of the device
  std::optional<TokenBucket> disk_rate;  // of a throughput disk, in bytes
  double estimate = 0;                   // device time of a request of the class, seconds
};

struct ClassQueue {
  static constexpr uint32_t kNowhere = UINT32_MAX;
  static constexpr double kTimeSlack = 0.1;  // seconds that others may be ahead: a full bucket

  ClassQueue() { heap_place.fill(kNowhere); }
  [[nodiscard]] ClassId id() const { return counters.id; }
  [[nodiscard]] bool is_disk() const { return spec.disk.type != ClassType::kBestEffort; }
  // A virtual disk whose share of the device's time a guarantee stage counts.
  [[nodiscard]] bool rents_time() const { return time_share > 0 && is_disk(); }

  // What waits and what is under way: every step.
  enum class Held : uint8_t { kLimit, kTurn, kRoom };
  alignas(kCacheLine) RequestList requests;  // waiting, not yet released
  uint64_t released = 0;                     // released, but still in the dispatch window
  uint64_t under_way = 0;                    // requests here that are not done, wherever they stand
  uint64_t device_ops = 0;                   // pulled and not completed
  uint64_t device_bytes = 0;                 // of those
  uint64_t landed_bytes = 0;                 // of those, what the device is done with
  uint32_t landed_ops = 0;                   // requests of that
  Held held = Held::kTurn;     // why its head waits, while there is one (wait_meter.h)
  bool has_demand = false;     // see promise_meter.h
  bool promise_total = false;  // the promise holds for all OSDs together (RULES.md §3.7)
  bool limit_total = true;     // so does the limit

  // Where it stands, and what holds it: at arrival, and when its head changes or others pass it.
  alignas(kCacheLine)
      std::array<uint32_t, static_cast<size_t>(HeapSlot::kCount)> heap_place;  // class_heap.h
  uint64_t first_sequence = 0;  // requests before it belong to a removed class of the same number
  int64_t largest_tokens = 0;   // largest request seen, which sizes the buckets (A9)
  std::unique_ptr<TokenBucket> ceiling;        // limit, checked before every stage; null: none
  std::unique_ptr<Transactions> transactions;  // guarantee, second level; null: none

  alignas(kCacheLine) WaitState wait;  // where its time goes: every step

  // Completions.
  alignas(kCacheLine) uint64_t second_bytes = 0;  // served here, plus elsewhere under a total
  uint64_t period_bytes = 0;  // promise, since the second and the maximizer's period began
  double second_ops = 0;      // requests; of those elsewhere, estimated
  ContractState contract;
  double second_time = 0;  // of the device, seconds: of a virtual disk
  // What the promise meter carries from second to second: service beyond the promise, bounded.
  double carry_bytes = 0;
  double carry_ops = 0;
  double carry_time = kTimeSlack;
  TimePoint demand_since;  // valid while it has demand

  // What it is promised, and the clock of its finish times.
  alignas(kCacheLine) uint64_t promised = 0;  // bytes per second of the leaf; 0: no promise
  uint64_t promised_iops = 0;                 // requests per second, promised as well or instead
  uint64_t bound_iops = 0;                    // requests per second that its latency bound needs
  double finish_rate = 0;   // dispatch (VC, CVC): 1/s, spacing of FT; 0: by bytes, or none
  TimePoint finish_clock;   // dispatch (VC, CVC): FT of the last stamped one
  int64_t unit_tokens = 0;  // larger requests count as several of those; 0: none does
  // Device time per time: of its virtual disk, or what its promise in bytes was booked as; 0: is
  // not counted (scheduler_setup.cc).
  double time_share = 0;
  std::unique_ptr<MoreLeaves> more;  // guarantee (htb.h); null: neither of them

  alignas(kCacheLine) std::optional<TokenBucket> leaf;  // guarantee

  // Surplus DSFQ.
  alignas(kCacheLine) double finish_tag = 0;  // F of the last released request
  double owed = 0;                            // hybrid-h: delay cut off so far, in cost
  double owed_after_head = 0;                 // what `owed` becomes when the head is released
  TimePoint idle_since;                       // valid while nothing is under way
  std::optional<TimePoint> returned_at;       // after long idle time
  // Which of its requests goes next: the front of `requests`, which are else in order of arrival.
  std::unique_ptr<FlowOrder> flows = std::make_unique<FlowOrder>();

  alignas(kCacheLine) DiskState disk;  // surplus (cooperative)

  // Arrivals, departures and completions count in the first line of it.
  alignas(kCacheLine) ClassCounters counters;

  // The weight is in its first line, the virtual disk in one, too.
  alignas(kCacheLine) ClassSpec spec;
};

}  // namespace weir::osd::qos
