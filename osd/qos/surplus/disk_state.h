// DiskState: what surplus `cooperative` remembers about one class (a virtual disk). Written by that
// box only; times of the device in seconds.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/time.h"
#include "common/qos/virtual_disk.h"

namespace weir::osd::qos {

struct Request;

struct DiskState {
  bool known = false;    // the box has met the class
  bool offered = false;  // has a head that may be served
  bool parked = true;    // was found idle while entitled: its clock is the system clock
  // As filed among those that may get spare time; a contract that changes is filed anew.
  ClassType filed = ClassType::kBestEffort;
  double clock = 0;     // v, unless parked
  double estimate = 0;  // of the device time of one request; 0: none served yet
  uint64_t next_lba = 0;
  uint64_t last_turn = 0;  // round robin

  // Type latency: the queue begins with `missed` requests that are too late already; the first
  // after those; and how many are missed or missing.
  uint64_t missed = 0;
  Request* first_on_time = nullptr;
  uint64_t late = 0;

  // Type throughput: bytes served since the beginning of the average.
  uint64_t rate_filed = 0;
  double average_bytes = 0;
  std::optional<TimePoint> average_start;

  double best_effort_weight = 0;  // as counted in the sum of the box
};

}  // namespace weir::osd::qos
