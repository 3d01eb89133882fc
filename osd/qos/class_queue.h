// ClassQueue: one class at one OSD: its spec, its waiting requests and what each box of the
// pipeline remembers about it. One struct, so that a decision touches one place in memory; each
// field says which box writes it.
//
// Threads: the scheduler's owner. Ownership: the scheduler; boxes hold plain pointers, which they
// drop in Remove.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "osd/qos/admission/service_monitor.h"
#include "osd/qos/guarantee/token_bucket.h"
#include "osd/qos/guarantee/transactions.h"
#include "osd/qos/request_list.h"
#include "osd/qos/scheduler.h"
#include "osd/qos/surplus/disk_state.h"

namespace weir::osd::qos {

// The heaps that a queue may stand in.
enum class HeapSlot : uint8_t {
  kOwnWaiting,
  kOwnReady,
  kSurplus,
  kBeside,
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
  Terms terms;
  std::optional<DelayClock> clock;  // of a bound that is not a virtual disk's
  double unit_bytes = 0;
  bool latency_bound = false;  // its bound needs more requests per second than it asks for
  bool counts_rate = false;    // it is part of Q_IOrate
  uint64_t requests = 0;       // done under these terms
  uint32_t seconds = 0;        // in which any was done
  bool active = false;         // in this second
  uint64_t second_done = 0;
  uint64_t second_missed = 0;
};

// What control/wait_meter.h remembers about a class.
struct WaitState {
  enum class Held : uint8_t { kLimit, kTurn, kRoom };
  Held held = Held::kTurn;       // why its head waits, while there is one
  TimePoint since;               // the sums hold until then
  uint64_t released_before = 0;  // of all classes, by then
  OsdClassTimes times;
};

struct ClassQueue {
  static constexpr uint32_t kNowhere = UINT32_MAX;

  ClassQueue() { heap_place.fill(kNowhere); }

  ClassSpec spec;
  RequestList requests;        // waiting, not yet released
  uint64_t released = 0;       // released, but still in the dispatch window
  int64_t largest_tokens = 0;  // largest request seen, which sizes the buckets (A9)
  uint64_t promised = 0;       // bytes per second that the leaf refills with; 0: no promise
  uint64_t promised_iops = 0;  // requests per second, promised as well or instead
  uint64_t bound_iops = 0;     // requests per second that its latency bound needs
  int64_t unit_tokens = 0;     // larger requests count as several of those; 0: none does
  bool promise_total = false;  // the promise holds for all OSDs together (§3.7)
  bool limit_total = true;     // so does the limit

  std::optional<TokenBucket> leaf;             // guarantee
  std::optional<TokenBucket> iops_leaf;        // guarantee, in parts of requests (htb.h)
  std::optional<TokenBucket> bound_leaf;       // the same for the latency bound, instead of both
  std::unique_ptr<Transactions> transactions;  // guarantee, second level; null: none
  std::optional<TokenBucket> ceiling;          // limit, checked before every stage
  TimePoint finish_clock;                      // dispatch (VC, CVC): FT of the last stamped one
  double finish_rate = 0;                      // 1/s, spacing of FT; 0: by bytes, or none
  double finish_tag = 0;                       // surplus (DSFQ): F of the last released request
  double owed = 0;             // surplus (DSFQ hybrid-h): delay cut off so far, in cost
  double owed_after_head = 0;  // what `owed` becomes when the head is released
  DiskState disk;              // surplus (cooperative)
  std::array<uint32_t, static_cast<size_t>(HeapSlot::kCount)> heap_place;

  uint64_t under_way = 0;                // requests here that are not done, wherever they stand
  TimePoint idle_since;                  // valid while there are none
  std::optional<TimePoint> returned_at;  // after long idle time
  uint64_t first_sequence = 0;  // requests before it belong to a removed class of the same number

  // Statistics and the promise meter.
  ClassCounters counters;
  uint64_t device_bytes = 0;  // pulled and not completed
  uint64_t device_ops = 0;
  uint64_t landed_bytes = 0;  // of those, what the device is done with
  bool has_demand = false;    // see promise_meter.h
  TimePoint demand_since;     // valid while it has
  uint64_t second_bytes = 0;  // served here, plus elsewhere under a total promise,
  uint64_t period_bytes = 0;  // since the second and the maximizer's period began
  double second_ops = 0;      // requests; of those elsewhere, estimated
  double carry_bytes = 0;     // service beyond the promise, bounded
  double carry_ops = 0;
  ContractState contract;
  WaitState wait;
};

}  // namespace weir::osd::qos
