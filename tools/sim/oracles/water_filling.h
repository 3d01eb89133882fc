// What DSFQ's Theorem 3 says a brick gives: the expected result beside which runs are laid.
// osd/qos/RULES.md §2.7.
#pragma once

#include <vector>

namespace weir::sim {

// Streams that are backlogged at one brick of this capacity. `elsewhere`: their rates on other
// bricks. Returns their rates here: totals per weight are levelled as far as the brick's capacity
// goes, and who has more than the level already gets nothing.
std::vector<double> WaterFill(double capacity, const std::vector<double>& weights,
                              const std::vector<double>& elsewhere);

// The same under HYBRID-DSFQ: x_i = phi_i * max(L - o_i, L / (1 + K_i)), L such that the sum is the
// capacity (fluid limit).
std::vector<double> HybridFill(double capacity, const std::vector<double>& weights,
                               const std::vector<double>& elsewhere,
                               const std::vector<double>& factors);

// Streams on different sets of bricks, all backlogged where they are: rates[stream][brick], by
// solving brick after brick until nothing changes. `uses[stream][brick]` says who is where.
std::vector<std::vector<double>> WaterFillAll(const std::vector<double>& capacities,
                                              const std::vector<double>& weights,
                                              const std::vector<std::vector<bool>>& uses);

}  // namespace weir::sim
