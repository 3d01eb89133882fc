// The document of experiments, and where the program is that draws a page of it.
#include "tools/sim/output/document.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/sim/output/report.h"

namespace weir::sim {
namespace {

TEST(DocumentTest, HasChecksAndTheSeriesOfFigures) {
  const Experiment experiment{"E0", "title", "DSFQ figure 0", "about", [](sim::Run&) {}};
  Outcome outcome{&experiment, sim::Run(7)};
  outcome.run.Near("near", 1, 2, 3);
  outcome.run.Draw(
      {"a figure", "s", "MB/s", {{"f", {0, 1}, {5, kNoNumber}}, {"f, paper", {0}, {5}, true}}});
  const auto document = nlohmann::json::parse(JsonOf({outcome}));
  EXPECT_EQ(document["seed"], 7);
  const auto& found = document["experiments"][0];
  EXPECT_EQ(found["about"], "about");
  EXPECT_EQ(found["checks"][0]["expected"], 2);
  const auto& figure = found["figures"][0];
  EXPECT_EQ(figure["x_label"], "s");
  EXPECT_EQ(figure["curves"][0]["y"], nlohmann::json({5, nullptr}));
  EXPECT_EQ(figure["curves"][1]["paper"], true);
}

TEST(DocumentTest, ABuiltProgramFindsWhatDrawsTheReport) {
  const auto program = FindReportProgram();
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE(std::filesystem::exists(*program + "/elements.py"));
}

}  // namespace
}  // namespace weir::sim
