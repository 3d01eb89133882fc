// Goal: an operator sees who of a cluster runs another build, also one that does not say.
#include "tools/osdctl/version_document.h"

#include <gmock/gmock.h>

namespace weir::osdctl {
namespace {

wire::Build Of(const std::string& commit) {
  wire::Build build;
  build.set_version("0.1.0");
  build.set_commit(commit);
  build.set_wire(2);
  build.set_disk_formats("OSD 4");
  return build;
}

TEST(VersionDocumentTest, WhoRunsAnotherBuildIsSeen) {
  EXPECT_TRUE(AreAlike({}));
  EXPECT_TRUE(AreAlike({{"mds", Of("a")}, {"osd.0", Of("a")}}));
  EXPECT_FALSE(AreAlike({{"mds", Of("a")}, {"osd.0", Of("b")}}));
  const std::vector<Built> older = {{"mds", Of("a")}, {"osd.0", {}}};
  EXPECT_FALSE(AreAlike(older));
  EXPECT_THAT(VersionTable(older), ::testing::ContainsRegex("mds +0.1.0 +a +2 +OSD 4"));
  EXPECT_THAT(VersionTable(older), ::testing::ContainsRegex("osd.0 +older"));
  EXPECT_EQ(VersionDocument(older)["programs"][1]["wire"], 0);
  EXPECT_EQ(VersionDocument(older)["alike"], false);
}

}  // namespace
}  // namespace weir::osdctl
