#include "osd/qos/control/simplex.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::osd::qos {
namespace {

double Value(const std::vector<double>& objective, const std::vector<double>& point) {
  double value = 0;
  for (size_t v = 0; v < point.size(); ++v) value += objective[v] * point[v];
  return value;
}

// The textbook's: 3 x + 5 y, x <= 4, 2 y <= 12, 3 x + 2 y <= 18: 36 at (2, 6).
TEST(SimplexTest, FindsTheBestVertex) {
  const auto point = SolveSimplex({3, 5}, {{{1, 0}, 4}, {{0, 2}, 12}, {{3, 2}, 18}});
  ASSERT_TRUE(point.has_value());
  EXPECT_NEAR((*point)[0], 2, 1e-12);
  EXPECT_NEAR((*point)[1], 6, 1e-12);
}

TEST(SimplexTest, SaysWhenNothingBoundsTheObjective) {
  EXPECT_FALSE(SolveSimplex({1, 1}, {{{1, 0}, 4}}).has_value());
  EXPECT_FALSE(SolveSimplex({1}, {{{-1}, 0}}).has_value());
}

TEST(SimplexTest, StaysWhereItIsWhenNothingImproves) {
  EXPECT_EQ(SolveSimplex({-1, 0}, {{{1, 1}, 1}}), (std::vector<double>{0, 0}));
}

// Beale's program, on which the largest coefficient first goes round and round: 0.05 at
// (1/25, 0, 1, 0).
TEST(SimplexTest, DoesNotCycle) {
  const std::vector<double> objective{.75, -150, .02, -6};
  const auto point = SolveSimplex(
      objective, {{{.25, -60, -1.0 / 25, 9}, 0}, {{.5, -90, -1.0 / 50, 3}, 0}, {{0, 0, 1, 0}, 1}});
  ASSERT_TRUE(point.has_value());
  EXPECT_NEAR(Value(objective, *point), .05, 1e-12);
}

// Where both rows are equations; no point if they are parallel.
std::optional<std::vector<double>> Meet(const SimplexRow& a, const SimplexRow& b) {
  const double det = a.coefficients[0] * b.coefficients[1] - a.coefficients[1] * b.coefficients[0];
  if (std::abs(det) < 1e-9) return std::nullopt;
  return std::vector{(a.bound * b.coefficients[1] - b.bound * a.coefficients[1]) / det,
                     (a.coefficients[0] * b.bound - b.coefficients[0] * a.bound) / det};
}

// Goal: in two variables, as many as two tiers have, it does exactly as much as the best vertex.
// Method: every pair of rows, the axes included, taken as equations.
TEST(SimplexPropertyTest, NoVertexIsBetter) {
  Prng prng(weir::testing::TestSeed());
  for (int n = 0; n < 1000; ++n) {
    const std::vector<double> objective{prng.Real(), prng.Real()};
    std::vector<SimplexRow> rows{{{1, 0}, 1 + prng.Real()}, {{0, 1}, 1 + prng.Real()}};
    for (uint64_t more = prng.Uniform(0, 6); more > 0; --more) {
      rows.push_back({{prng.Real() - .3, prng.Real() - .3}, prng.Chance(.3) ? 0 : prng.Real()});
    }
    std::vector<SimplexRow> all = rows;
    all.insert(all.end(), {{{-1, 0}, 0}, {{0, -1}, 0}});
    double most = 0;
    for (const SimplexRow& a : all) {
      for (const SimplexRow& b : all) {
        const auto point = Meet(a, b);
        const bool feasible = point && std::all_of(all.begin(), all.end(), [&](const auto& row) {
                                return Value(row.coefficients, *point) <= row.bound + 1e-9;
                              });
        if (feasible) most = std::max(most, Value(objective, *point));
      }
    }
    const auto best = SolveSimplex(objective, rows);
    ASSERT_TRUE(best.has_value());
    ASSERT_NEAR(Value(objective, *best), most, 1e-7) << n;
  }
}

// Goal: the answer is feasible, and no random feasible point is better.
TEST(SimplexPropertyTest, NoRandomPointIsBetter) {
  Prng prng(weir::testing::TestSeed());
  for (int n = 0; n < 300; ++n) {
    const size_t variables = prng.Uniform(1, 8);
    std::vector<double> objective(variables);
    for (double& c : objective) c = prng.Real();
    std::vector<SimplexRow> rows(prng.Uniform(1, 12));
    for (SimplexRow& row : rows) {
      for (size_t v = 0; v < variables; ++v) row.coefficients.push_back(prng.Real() - .3);
      row.bound = prng.Real();
    }
    for (size_t v = 0; v < variables; ++v) {  // a box, so that there is a best
      rows.push_back({std::vector<double>(variables, 0.0), 1 + prng.Real()});
      rows.back().coefficients[v] = 1;
    }
    const auto excess = [&](const std::vector<double>& point) {
      double most = 0;
      for (const SimplexRow& row : rows) {
        most = std::max(most, Value(row.coefficients, point) - row.bound);
      }
      return most;
    };
    const auto best = SolveSimplex(objective, rows);
    ASSERT_TRUE(best.has_value());
    ASSERT_LE(excess(*best), 1e-9) << n;
    for (int i = 0; i < 100; ++i) {
      std::vector<double> point(variables);
      for (double& x : point) x = 2 * prng.Real();
      if (excess(point) > 0) continue;
      ASSERT_LE(Value(objective, point), Value(objective, *best) + 1e-9) << n;
    }
  }
}

}  // namespace
}  // namespace weir::osd::qos
