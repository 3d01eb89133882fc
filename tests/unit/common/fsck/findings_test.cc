#include "common/fsck/findings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weir {
namespace {

TEST(FindingsTest, CountsByKindAndListsOnlyTheFirst) {
  Findings findings;
  EXPECT_TRUE(findings.clean());
  for (size_t i = 0; i < Findings::kListedMax + 5; ++i) findings.Add("leak", "x");
  findings.Add("checksum", "y");
  EXPECT_EQ(findings.found(), Findings::kListedMax + 6);
  EXPECT_EQ(findings.listed().size(), Findings::kListedMax);
  findings.Repaired("leak");
  EXPECT_EQ(findings.damaged(), 1u);
  EXPECT_FALSE(findings.clean());
  findings.Repaired("checksum");
  EXPECT_TRUE(findings.clean());
}

TEST(FindingsTest, PrintsForPeopleAndForScripts) {
  CheckReport report;
  report.subject = "disk";
  report.facts = {{"used_bytes", 4096}, {"objects", 2}};
  EXPECT_EQ(ToText(report), "disk\n  used                 4KiB\n  objects              2\nclean\n");
  report.findings.Add("leak", "object \xff", true);
  report.findings.Add("lost", "object 2");
  EXPECT_NE(ToText(report).find("! leak: object \xff (repaired)\n! lost: object 2\n"),
            std::string::npos);
  EXPECT_NE(ToText(report).find("2 found, 1 repaired: 1 leak 1 lost\n"), std::string::npos);
  const auto json = nlohmann::json::parse(ToJson(report));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["used_bytes"], 4096);
  EXPECT_EQ(json["clean"], false);
  EXPECT_EQ(json["kinds"]["leak"]["repaired"], 1);
  EXPECT_EQ(json["findings"][1]["kind"], "lost");
}

}  // namespace
}  // namespace weir
