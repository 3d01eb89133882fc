// How dispatch `vc` and `cvc` behave (Stonehenge §4.1; osd/qos/RULES.md §4.2). Pure data.
#pragma once

#include <cstdint>

#include "common/base/time.h"

namespace weir {

struct CvcConfig {
  // Estimate of a service time in (5): fixed, or this part of what the device showed lately.
  // INT64_MIN always believes there is time (C-SCAN), INT64_MAX never (VC): I-22.
  Duration fixed_estimate{0};  // 0: measured
  double estimate_part = 0.9;
  Duration first_estimate = std::chrono::milliseconds(10);  // until 100 requests were measured
  double iops_max = 0;                                      // 0: from the measured mean
  uint32_t run_max = 0;     // M_run: picks off the finish order in a row; 0: any number
  uint32_t candidates = 1;  // M_cand: how many of the C-SCAN order may be tried
  bool late_mode = true;    // A17: C-SCAN while the first finish time has passed
  Duration ahead_max{0};    // A18 vc_ahead: bound on the finish time's lead; 0: none

  friend bool operator==(const CvcConfig&, const CvcConfig&) = default;
};

}  // namespace weir
