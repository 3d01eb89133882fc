// What a class is promised as a virtual disk of Stonehenge (§3.1), the quintuplet <A, B, C, D, E>:
//
//   A availability                 independent copies on distinct OSDs: those of the pool instead
//   B bandwidth     iops           requests per second
//   C capacity      capacity_bytes
//   D delay         bound          from the moment a request is among the first max_pending + 1
//                                  (A19) to its completion
//   E elasticity    probability    part of the requests for which D holds
//
// and how it becomes a rate, which is the only thing a disk can be asked for (delay_bound.h).
// Obeyed by dispatch `vc` and `cvc` (osd/qos/dispatch), admitted by admission.h. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir {

struct ServiceContract {
  double iops = 0;  // 0: none asked for
  uint64_t capacity_bytes = 0;
  Duration bound{0};  // 0: none
  double probability = 0.95;
  uint32_t max_pending = 16;  // requests that may wait beside the newest one when D is measured
  // Requests per second that keep the bound as measured, equation (11) (A24); 0: what it needs in
  // the worst case, (10). Never acts below `iops`.
  double granted_iops = 0;

  [[nodiscard]] bool empty() const { return iops <= 0 && bound.count() == 0; }
  friend bool operator==(const ServiceContract&, const ServiceContract&) = default;
};

// kInvalid names the field, the range and the option that sets it.
Status CheckContract(const ServiceContract& contract);

// One part of `contract` striped over n servers (§3.2): leeway * B / n, C / n, the same D and E,
// leeway * (max_pending + 1) / n requests, so that the rate that D needs is divided like B.
// `leeway` >= 1 is room for skew.
ServiceContract PartOf(const ServiceContract& contract, size_t servers, double leeway);

// The smallest leeway among `candidates` (ascending) with which the rate at any component exceeds
// leeway * B / n in at most 1 - E of the periods; the last one if none does. `rates` holds for each
// period the largest rate seen on any component.
double ChooseLeeway(const ServiceContract& contract, size_t servers,
                    const std::vector<double>& rates, const std::vector<double>& candidates);

}  // namespace weir
