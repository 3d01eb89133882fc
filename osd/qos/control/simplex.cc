#include "osd/qos/control/simplex.h"

#include <cstddef>

#include "common/base/check.h"

namespace weir::osd::qos {
namespace {

constexpr double kZero = 1e-12;      // of coefficients whose largest is about 1
constexpr size_t kSteepPivots = 50;  // nearly always enough; what is left may go round in circles

// Row 0 is the objective, negated; the last column holds the bounds. Slack variables come after the
// given ones; basis[r] names the variable that row r + 1 stands for.
class Tableau {
 public:
  Tableau(const std::vector<double>& objective, const std::vector<SimplexRow>& rows)
      : variables_(objective.size()),
        columns_(objective.size() + rows.size() + 1),
        cells_((rows.size() + 1) * columns_),
        basis_(rows.size()) {
    for (size_t v = 0; v < variables_; ++v) At(0, v) = -objective[v];
    for (size_t r = 0; r < rows.size(); ++r) {
      WEIR_CHECK(rows[r].bound >= 0, "x = 0 is feasible");
      for (size_t v = 0; v < variables_; ++v) At(r + 1, v) = rows[r].coefficients[v];
      At(r + 1, variables_ + r) = 1;
      At(r + 1, columns_ - 1) = rows[r].bound;
      basis_[r] = variables_ + r;
    }
  }

  // False when nothing bounds the objective.
  bool Solve() {
    for (size_t pivots = 0;; ++pivots) {
      const size_t column = pivots < kSteepPivots ? Steepest() : FirstThatImproves();
      if (column == columns_ - 1) return true;
      const size_t row = Leaving(column);
      if (row == 0) return false;
      Pivot(row, column);
    }
  }

  [[nodiscard]] std::vector<double> Point() const {
    std::vector<double> point(variables_, 0.0);
    for (size_t r = 0; r < basis_.size(); ++r) {
      if (basis_[r] < variables_) point[basis_[r]] = cells_[(r + 2) * columns_ - 1];
    }
    return point;
  }

 private:
  double& At(size_t row, size_t column) { return cells_[row * columns_ + column]; }

  // The variable that would improve the objective most for each unit; the last column for none.
  size_t Steepest() {
    size_t best = FirstThatImproves();
    for (size_t column = best; column < columns_ - 1; ++column) {
      if (At(0, column) < At(0, best)) best = column;
    }
    return best;
  }

  // Bland's choice; the last column for none.
  size_t FirstThatImproves() {
    size_t column = 0;
    while (column < columns_ - 1 && At(0, column) >= -kZero) ++column;
    return column;
  }

  // The row that bounds it most; of equals the one of the first variable. 0: none does.
  size_t Leaving(size_t column) {
    size_t best = 0;
    double least = 0;
    for (size_t row = 1; row <= basis_.size(); ++row) {
      if (At(row, column) <= kZero) continue;
      const double ratio = At(row, columns_ - 1) / At(row, column);
      const bool first_of_equals =
          best > 0 && ratio <= least + kZero && basis_[row - 1] < basis_[best - 1];
      if (best > 0 && ratio >= least - kZero && !first_of_equals) continue;
      best = row;
      least = ratio;
    }
    return best;
  }

  void Pivot(size_t row, size_t column) {
    const double pivot = At(row, column);
    for (size_t c = 0; c < columns_; ++c) At(row, c) /= pivot;
    for (size_t r = 0; r <= basis_.size(); ++r) {
      const double factor = At(r, column);
      if (r == row || factor == 0) continue;
      for (size_t c = 0; c < columns_; ++c) At(r, c) -= factor * At(row, c);
    }
    basis_[row - 1] = column;
  }

  const size_t variables_;
  const size_t columns_;
  std::vector<double> cells_;
  std::vector<size_t> basis_;
};

}  // namespace

std::optional<std::vector<double>> SolveSimplex(const std::vector<double>& objective,
                                                const std::vector<SimplexRow>& rows) {
  Tableau tableau(objective, rows);
  if (!tableau.Solve()) return std::nullopt;
  return tableau.Point();
}

}  // namespace weir::osd::qos
