#include "tools/sim/output/plot.h"

#include <gmock/gmock.h>

namespace weir::sim {
namespace {

using ::testing::HasSubstr;

Figure Sample() {
  return {"a < b & c",
          "s",
          "MB/s",
          {{"ours", {0, 1, 2}, {0, 10, 20}}, {"paper", {0, 2}, {0, 20}, true}}};
}

TEST(PlotTest, SvgHasAxesCurvesAndEscapedText) {
  const std::string svg = SvgOf(Sample());
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("<polyline points=\"70.0,340.0 330.0,190.0 590.0,40.0 \""));
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray=\"6 4\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(PlotTest, TextRisesFromLeftToRight) {
  const std::string text = TextOf(Sample(), 21, 5);
  EXPECT_THAT(text, HasSubstr("      20 |                  ...\n"));
  EXPECT_THAT(text, HasSubstr("       0 |...                  \n"));
  EXPECT_THAT(text, HasSubstr("         * ours  . paper"));
}

// One point, no point, one value: nothing to divide by.
TEST(PlotTest, DegenerateFiguresStillDraw) {
  EXPECT_FALSE(TextOf({"t", "x", "y", {}}).empty());
  EXPECT_FALSE(SvgOf({"t", "x", "y", {{"c", {5}, {5}}}}).empty());
  EXPECT_FALSE(TextOf({"t", "x", "y", {{"c", {5, 5}, {0, 0}}}}).empty());
  EXPECT_THAT(SvgOf({"t", "x", "y", {{"c", {0, 1}, {0.0 / 0.0, 1}}}}),
              ::testing::Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace weir::sim
