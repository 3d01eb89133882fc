// A linear program of a few variables:
//
//   max objective . x    rows: coefficients . x <= bound, bound >= 0    x >= 0
//
// by the primal simplex method on a condensed tableau. x = 0 is feasible, so there is no first
// phase. The steepest column is taken first; after fifty pivots Bland's rule picks them: no cycles,
// whatever ties there are, and the same answer always.
//
// Cost: O(rows * variables) for each pivot. Pure.
#pragma once

#include <optional>
#include <vector>

namespace weir::osd::qos {

struct SimplexRow {
  std::vector<double> coefficients;  // as many as the objective has
  double bound = 0;                  // >= 0
};

// The best x; nothing when the objective grows without bound.
std::optional<std::vector<double>> SolveSimplex(const std::vector<double>& objective,
                                                const std::vector<SimplexRow>& rows);

}  // namespace weir::osd::qos
