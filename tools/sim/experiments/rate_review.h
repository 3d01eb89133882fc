// RateReview: what measured admission grants to the classes that it has admitted already
// (Stonehenge §4.2.2 step 1; RULES.md A24). A class with a latency bound was promised the rate
// that keeps it in the worst case (10); once the OSD has measured how much of the worst case its
// requests take, (11) says a smaller rate does, and that becomes the spacing of its finish times
// (ServiceContract::granted_iops). Never below the IOPS' that the class asked for, at most once a
// minute, and only from stable measurements: what is measured next is measured under the new rates.
//
// No daemon has it: an MDS admits by what OSDs measure, and leaves the rates of those admitted
// before as they are.
//
// P_service must then be relative to the delay bound of the granted rate, DelayBound(max_pending,
// granted, iops_max). Units: requests per second. Threads: the owner's. Pure.
#pragma once

#include <vector>

#include "common/base/time.h"
#include "common/qos/contract_admission.h"

namespace weir::sim {

class RateReview {
 public:
  static constexpr Duration kPeriod = std::chrono::minutes(1);

  explicit RateReview(const AdmissionOptions& options = {}) : options_(options) {}

  // The rate of each class from now on, in the order of `classes`; empty: all stay as they are.
  // Requires iops_max > 0.
  std::vector<double> Review(const std::vector<AdmittedClass>& classes, double iops_max,
                             const ServiceMeasures& measures, TimePoint now);

 private:
  const AdmissionOptions options_;
  TimePoint next_{0};
};

}  // namespace weir::sim
