// What `osdctl verify isolation` measured, and whether that is isolation; pure.
//
// Units: microseconds, bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/osdctl/command.h"

namespace weir::osdctl {

struct IsolationBounds {
  double inflation_max = 4;       // p99 beside the aggressor over p99 alone
  double share_error_max = 0.10;  // of the larger deviation from the share by weight
  double jain_min = 0.95;         // or less, where that share error implies less
};

struct IsolationResult {
  std::vector<uint32_t> osds;
  double seconds = 0;               // of one phase
  std::vector<uint32_t> alone_us;   // latencies of the victim's small reads
  std::vector<uint32_t> beside_us;  // the same beside the aggressor
  uint64_t aggressor_bytes = 0;     // that it got meanwhile
  uint64_t victim_share_bytes = 0;  // when both ask for all that they can get
  uint64_t aggressor_share_bytes = 0;
};

struct IsolationCheck {
  const char* name;
  double measured;
  double bound;
  bool pass;
};
struct IsolationVerdict {
  double alone_p50_us = 0, alone_p99_us = 0;
  double beside_p50_us = 0, beside_p99_us = 0;
  std::vector<IsolationCheck> checks;  // inflation, share error, Jain index
  bool pass = false;
};

// Of equal weights: what each got over half of both, minus 1; the larger deviation.
double ShareError(uint64_t a, uint64_t b);
// (sum x)^2 / (n sum x^2): 1 for equal shares, 1/n when one has all. 0 for no service at all.
double JainIndex(const std::vector<double>& shares);

IsolationVerdict JudgeIsolation(const IsolationResult& result, const IsolationBounds& bounds);
Json IsolationDocument(const IsolationResult& result, const IsolationVerdict& verdict);
std::string IsolationScreen(const IsolationResult& result, const IsolationVerdict& verdict);

}  // namespace weir::osdctl
