#include "osd/qos/control/bottleneck_solver.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "osd/qos/control/simplex.h"

namespace weir::osd::qos {
namespace {

constexpr double kFeasible = 1e-9;    // relative
constexpr double kSingular = 1e-12;   // of rows whose largest entry is 1
constexpr size_t kLookAtAllUpTo = 3;  // variables; four have ten thousand vertices on eight tiers

// coefficient . rho <= bound
struct Row {
  PerTier coefficient{};
  double bound = 0;
};

// max objective . rho over rows, in the first `variables` of rho.
struct Program {
  size_t variables = 0;
  PerTier objective{};
  std::vector<Row> rows;
};

// What the program needs to know of all clients, per bottleneck set.
struct Sets {
  PerTier share{};                         // sum over B_k of f_i
  std::array<PerTier, kTiersMax> load{};   // [k][r]: sum over B_k of f_i * x_ir
  std::array<PerTier, kTiersMax> wants{};  // [l][k]: max over B_l of g_j * x_jk / C_k, <= 1
  std::array<bool, kTiersMax> used{};
};

Sets Classify(const Tiers& tiers, std::span<const TierClient> clients,
              std::span<const double> shares) {
  Sets sets;
  for (size_t i = 0; i < clients.size(); ++i) {
    const TierClient& client = clients[i];
    const size_t k = BottleneckOf(tiers, client);
    const double alone = tiers.capacity[k] / client.use[k];
    sets.used[k] = true;
    sets.share[k] += shares[i];
    for (size_t r = 0; r < tiers.count; ++r) {
      sets.load[k][r] += shares[i] * client.use[r];
      sets.wants[k][r] = std::max(sets.wants[k][r], alone * client.use[r] / tiers.capacity[r]);
    }
  }
  return sets;
}

// Scales a row so that its largest coefficient is 1; a row without coefficients says nothing.
void AddRow(Row row, Program* program) {
  double largest = 0;
  for (const double c : row.coefficient) largest = std::max(largest, std::abs(c));
  if (largest <= 0) return;
  for (double& c : row.coefficient) c /= largest;
  row.bound /= largest;
  program->rows.push_back(row);
}

// `tier_of`: the tiers that are somebody's bottleneck; variable v stands for the rho of tier_of[v].
Program Build(const Tiers& tiers, const Sets& sets, std::span<const size_t> tier_of,
              bool sharing_incentive) {
  Program program;
  program.variables = tier_of.size();
  for (size_t v = 0; v < tier_of.size(); ++v) program.objective[v] = sets.share[tier_of[v]];
  for (size_t r = 0; r < tiers.count; ++r) {
    Row capacity{.bound = tiers.capacity[r]};
    for (size_t v = 0; v < tier_of.size(); ++v) {
      capacity.coefficient[v] = sets.load[tier_of[v]][r];
    }
    AddRow(capacity, &program);
  }
  for (size_t v = 0; v < tier_of.size(); ++v) {
    for (size_t u = 0; u < tier_of.size(); ++u) {
      const double wants = sets.wants[tier_of[u]][tier_of[v]];
      if (u == v || wants <= 0) continue;
      Row envy;
      envy.coefficient[v] = -1;
      envy.coefficient[u] = wants;
      AddRow(envy, &program);
    }
    Row least{.bound = sharing_incentive ? -1.0 : 0.0};
    least.coefficient[v] = -1;
    AddRow(least, &program);
  }
  return program;
}

// Gauss with pivoting on the chosen rows taken as equations. False if they do not meet in a point.
bool Meet(const Program& program, std::span<const size_t> chosen, PerTier* point) {
  const size_t n = program.variables;
  std::array<Row, kTiersMax> system;
  for (size_t i = 0; i < n; ++i) system[i] = program.rows[chosen[i]];
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t i = column + 1; i < n; ++i) {
      const double candidate = std::abs(system[i].coefficient[column]);
      if (candidate > std::abs(system[pivot].coefficient[column])) pivot = i;
    }
    if (std::abs(system[pivot].coefficient[column]) < kSingular) return false;
    std::swap(system[pivot], system[column]);
    for (size_t i = 0; i < n; ++i) {
      if (i == column) continue;
      const double factor = system[i].coefficient[column] / system[column].coefficient[column];
      for (size_t c = column; c < n; ++c) {
        system[i].coefficient[c] -= factor * system[column].coefficient[c];
      }
      system[i].bound -= factor * system[column].bound;
    }
  }
  for (size_t i = 0; i < n; ++i) (*point)[i] = system[i].bound / system[i].coefficient[i];
  return true;
}

bool Feasible(const Program& program, const PerTier& point) {
  for (const Row& row : program.rows) {
    double left = 0, scale = std::abs(row.bound);
    for (size_t v = 0; v < program.variables; ++v) {
      left += row.coefficient[v] * point[v];
      scale = std::max(scale, std::abs(row.coefficient[v] * point[v]));
    }
    if (left > row.bound + kFeasible * scale) return false;
  }
  return true;
}

class BestVertex {
 public:
  explicit BestVertex(const Program& program) : program_(program) {}

  void Consider(std::span<const size_t> chosen) {
    PerTier point{};
    if (!Meet(program_, chosen, &point) || !Feasible(program_, point)) return;
    double value = 0, least = point[0];
    for (size_t v = 0; v < program_.variables; ++v) {
      value += program_.objective[v] * point[v];
      least = std::min(least, point[v]);
    }
    const double tie = kFeasible * std::abs(value);
    const bool better = !found_ || value > value_ + tie || (value > value_ - tie && least > least_);
    if (!better) return;
    found_ = true;
    value_ = value;
    least_ = least;
    point_ = point;
  }

  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] const PerTier& point() const { return point_; }

 private:
  const Program& program_;
  bool found_ = false;
  double value_ = 0;
  double least_ = 0;
  PerTier point_{};
};

// Every choice of as many rows as there are variables.
PerTier BestOfAllVertices(const Program& program) {
  const size_t n = program.variables;
  const size_t rows = program.rows.size();
  std::array<size_t, kTiersMax> chosen{};
  for (size_t i = 0; i < n; ++i) chosen[i] = i;
  BestVertex best(program);
  for (;;) {
    best.Consider(std::span(chosen).first(n));
    size_t i = n;
    while (i > 0 && chosen[i - 1] == rows - n + i - 1) --i;
    if (i == 0) break;
    ++chosen[i - 1];
    for (; i < n; ++i) chosen[i] = chosen[i - 1] + 1;
  }
  WEIR_CHECK(best.found(), "the program of bottleneck-aware allocation has the DRF point");
  return best.point();
}

// With rho = least + x every bound is >= 0: all rho equal to `least` is feasible. Rounding may have
// made such a bound a little less than that.
PerTier BestBySimplex(const Program& program, double least) {
  const size_t n = program.variables;
  std::vector<SimplexRow> rows;
  rows.reserve(program.rows.size());
  for (const Row& row : program.rows) {
    SimplexRow& moved = rows.emplace_back();
    moved.coefficients.assign(row.coefficient.begin(), row.coefficient.begin() + n);
    moved.bound = row.bound;
    for (const double c : moved.coefficients) moved.bound -= c * least;
    moved.bound = std::max(moved.bound, 0.0);
  }
  const std::vector<double> objective(program.objective.begin(), program.objective.begin() + n);
  const auto best = SolveSimplex(objective, rows);
  WEIR_CHECK(best.has_value(), "capacities bound the program of bottleneck-aware allocation");
  PerTier point{};
  for (size_t v = 0; v < n; ++v) point[v] = least + (*best)[v];
  return point;
}

}  // namespace

BottleneckAllocation SolveBottleneckAware(const Tiers& tiers, std::span<const TierClient> clients,
                                          bool sharing_incentive, TierMethod method) {
  BottleneckAllocation result;
  result.shares = FairShares(tiers, clients);
  const Sets sets = Classify(tiers, clients, result.shares);
  std::array<size_t, kTiersMax> tier_of{};
  size_t variables = 0;
  for (size_t k = 0; k < tiers.count; ++k) {
    if (sets.used[k]) tier_of[variables++] = k;
  }
  const auto used = std::span<const size_t>(tier_of).first(variables);
  const Program program = Build(tiers, sets, used, sharing_incentive);
  const bool by_simplex =
      method == TierMethod::kBySize ? variables > kLookAtAllUpTo : method == TierMethod::kSimplex;
  const PerTier point =
      by_simplex ? BestBySimplex(program, sharing_incentive ? 1 : 0) : BestOfAllVertices(program);
  for (size_t v = 0; v < variables; ++v) result.amplification[tier_of[v]] = point[v];

  result.rates.reserve(clients.size());
  for (size_t i = 0; i < clients.size(); ++i) {
    const double rho = result.amplification[BottleneckOf(tiers, clients[i])];
    result.rates.push_back(rho * result.shares[i]);
    result.total += result.rates.back();
  }
  result.utilisation = Utilisation(tiers, clients, result.rates);
  return result;
}

EnvyBounds TwoTierEnvyBounds(const Tiers& tiers, std::span<const TierClient> clients) {
  const Sets sets = Classify(tiers, clients, FairShares(tiers, clients));
  EnvyBounds bounds;
  if (!sets.used[0] || !sets.used[1]) return bounds;
  bounds.alpha = sets.wants[1][0];
  if (sets.wants[0][1] > 0) bounds.beta = 1 / sets.wants[0][1];
  return bounds;
}

}  // namespace weir::osd::qos
