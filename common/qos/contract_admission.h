// Admission of classes with a contract (requests per second, latency bound) to one OSD: what of its
// IOPSmax may be promised (Stonehenge §4.2; RULES.md §4.4).
//
//   additive   sum over all of max(IOPS', rate by (10)) <= IOPSmax
//   measured   1. IOPS''_j of every class by (11), with c_j = min(1, Q_service(E_j) + s)
//              2. IOPS_j = max(IOPS'_j, IOPS''_j)
//              3. latency-bound if IOPS''_j > IOPS'_j, else throughput-bound
//              4. Q_spare(x) = IOPSmax - Q_IOrate(x)
//              5. admit iff the sum of IOPS_j of latency-bound classes <= Q_spare(E of the
//              newcomer)
//
// Choices where the paper leaves one: a throughput-bound class whose rate was not measured long
// enough, the newcomer included, counts in step 5 with IOPS' (A20). Without stable measurements
// c = 1, which is (10) (A22). Example: mpr 14, IOPSmax 630, D 120 ms, Q(.95) = .11, s = .2: 38.9
// instead of 126.7 requests per second.
//
// Invariants: with c = 1 and nothing measured, measured = additive (I-23); a smaller E or a larger
// D never turns an accept into a reject (I-25), as long as `strictest` is off and the set of
// latency-bound classes is the same. Units: requests per second. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/qos/service_contract.h"

namespace weir {

// What one OSD measured (osd/qos/admission/service_monitor.h).
struct ServiceMeasures {
  // Q_service(E): the part of the worst-case delay that E of the requests stay below. Not called
  // unless `stable`.
  std::function<double(double e)> service_part;
  // Q_IOrate(x): rate that the throughput-bound classes together stay below in x of the seconds.
  std::function<double(double x)> io_rate;
  bool stable = false;  // enough measured, and the halves of the window agree
};

struct AdmissionOptions {
  double safety = 0.2;     // s: what one class more may do to Q_service
  bool strictest = false;  // A21: the largest E of all in step 5, not the newcomer's
  // Latency-bound classes admitted, but not measured yet: each may move Q_service by s as well.
  size_t unmeasured = 0;
  double taken = 0;  // of IOPSmax, by promises that were weighed with their worst case
};

struct AdmittedClass {
  ServiceContract contract;
  bool measured = false;  // its rate is part of io_rate (A20)
};

struct ContractDecision {
  bool admitted = false;
  double reserved = 0;              // step 5's sum, the newcomer included
  double spare = 0;                 // what it may be at most
  std::vector<double> rates;        // IOPS_j in the order of the classes, the newcomer last
  std::vector<bool> latency_bound;  // step 3
  std::string why;                  // for people, when refused
};

// `classes`: those admitted before. Requires iops_max > 0.
ContractDecision AdmitContract(const std::vector<AdmittedClass>& classes,
                               const ServiceContract& newcomer, double iops_max);
ContractDecision AdmitMeasured(const std::vector<AdmittedClass>& classes,
                               const ServiceContract& newcomer, double iops_max,
                               const ServiceMeasures& measures,
                               const AdmissionOptions& options = {});

// A contract striped over several OSDs is admitted by all or by none: the first refusal, or the
// last decision. `admit` decides for the n-th OSD.
ContractDecision AdmitOnAll(size_t osds, const std::function<ContractDecision(size_t)>& admit);

}  // namespace weir
