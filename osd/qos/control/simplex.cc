#include "osd/qos/control/simplex.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace weir::osd::qos {
namespace {

constexpr double kZero = 1e-12;      // of coefficients whose largest is about 1
constexpr size_t kSteepPivots = 50;  // nearly always enough; what is left may go round in circles

// Only what can change is kept: one column for each variable that is 0 now and one for the bounds;
// the columns of the others would be those of a unit matrix. Row 0 is the objective, negated. Slack
// variables are numbered after the given ones; basic_[r] names the variable that row r + 1 stands
// for, zero_[c] the one of column c. A pivot swaps two names.
class Tableau {
 public:
  Tableau(const std::vector<double>& objective, const std::vector<SimplexRow>& rows)
      : variables_(objective.size()),
        columns_(objective.size() + 1),
        cells_((rows.size() + 1) * columns_),
        basic_(rows.size()),
        zero_(objective.size()) {
    std::iota(zero_.begin(), zero_.end(), size_t{0});
    std::iota(basic_.begin(), basic_.end(), variables_);
    for (size_t v = 0; v < variables_; ++v) Row(0)[v] = -objective[v];
    for (size_t r = 0; r < rows.size(); ++r) {
      WEIR_CHECK(rows[r].bound >= 0, "x = 0 is feasible");
      double* row = Row(r + 1);
      for (size_t v = 0; v < variables_; ++v) row[v] = rows[r].coefficients[v];
      row[variables_] = rows[r].bound;
    }
  }

  // False when nothing bounds the objective.
  bool Solve() {
    for (size_t pivots = 0;; ++pivots) {
      const size_t column = Entering(pivots < kSteepPivots);
      if (column == variables_) return true;
      const size_t row = Leaving(column);
      if (row == 0) return false;
      Pivot(row, column);
    }
  }

  [[nodiscard]] std::vector<double> Point() {
    std::vector<double> point(variables_, 0.0);
    for (size_t r = 0; r < basic_.size(); ++r) {
      if (basic_[r] < variables_) point[basic_[r]] = Row(r + 1)[variables_];
    }
    return point;
  }

 private:
  double* Row(size_t row) { return &cells_[row * columns_]; }

  // A column that would improve the objective: the one that does most for each unit, or Bland's
  // choice, the first variable; of equals the first variable too. The bounds' column for none.
  size_t Entering(bool steepest) {
    const double* gain = Row(0);
    size_t best = variables_;
    for (size_t c = 0; c < variables_; ++c) {
      if (gain[c] >= -kZero) continue;
      const bool steeper = best == variables_ || (steepest && gain[c] < gain[best]);
      const bool flatter = !steeper && steepest && gain[c] > gain[best];
      if (steeper || (!flatter && zero_[c] < zero_[best])) best = c;
    }
    return best;
  }

  // The row that bounds it most; of equals the one of the first variable. 0: none does.
  size_t Leaving(size_t column) {
    size_t best = 0;
    double least = 0;
    for (size_t row = 1; row <= basic_.size(); ++row) {
      const double* cells = Row(row);
      if (cells[column] <= kZero) continue;
      const double ratio = cells[variables_] / cells[column];
      const bool first_of_equals =
          best > 0 && ratio <= least + kZero && basic_[row - 1] < basic_[best - 1];
      if (best > 0 && ratio >= least - kZero && !first_of_equals) continue;
      best = row;
      least = ratio;
    }
    return best;
  }

  void Pivot(size_t row, size_t column) {
    double* pivot_row = Row(row);
    const double pivot = pivot_row[column];
    pivot_row[column] = 1;
    for (size_t c = 0; c < columns_; ++c) pivot_row[c] /= pivot;
    for (size_t r = 0; r <= basic_.size(); ++r) {
      double* cells = Row(r);
      const double factor = cells[column];
      if (r == row || factor == 0) continue;
      cells[column] = 0;
      for (size_t c = 0; c < columns_; ++c) cells[c] -= factor * pivot_row[c];
    }
    std::swap(basic_[row - 1], zero_[column]);
  }

  const size_t variables_;
  const size_t columns_;
  std::vector<double> cells_;
  std::vector<size_t> basic_;
  std::vector<size_t> zero_;
};

}  // namespace

std::optional<std::vector<double>> SolveSimplex(const std::vector<double>& objective,
                                                const std::vector<SimplexRow>& rows) {
  Tableau tableau(objective, rows);
  if (!tableau.Solve()) return std::nullopt;
  return tableau.Point();
}

}  // namespace weir::osd::qos
