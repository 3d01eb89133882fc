#include "common/disk/tier_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::HasSubstr;

TEST(TierSpecTest, DisksByName) {
  const auto tiers = ParseTierDisks("ssd=/dev/nvme0n1,hdd=/dev/sdb");
  ASSERT_TRUE(tiers.ok()) << tiers.status();
  ASSERT_EQ(tiers->size(), 2u);
  EXPECT_EQ((*tiers)[0].name, "ssd");
  EXPECT_EQ((*tiers)[0].disk, "/dev/nvme0n1");
  EXPECT_EQ((*tiers)[1].name, "hdd");
}

// The commas of an emulated disk's options are not those between tiers.
TEST(TierSpecTest, OptionsStayWithTheirDisk) {
  const char* text = "ssd=ssd:4GiB,iops=1000,channels=1,hdd=hdd:20GiB,model=6y080p0,old=/dev/sdc";
  const auto tiers = ParseTierDisks(text);
  ASSERT_TRUE(tiers.ok()) << tiers.status();
  ASSERT_EQ(tiers->size(), 3u);
  EXPECT_EQ((*tiers)[0].disk, "ssd:4GiB,iops=1000,channels=1");
  EXPECT_EQ((*tiers)[1].disk, "hdd:20GiB,model=6y080p0");
  EXPECT_EQ((*tiers)[2].disk, "/dev/sdc");
  EXPECT_EQ(FormatTierDisks(*tiers), text);
}

TEST(TierSpecTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "2 to 8 tiers"},
      {"ssd=/dev/sda", "2 to 8 tiers"},
      {"ssd=/dev/sda,/dev/sdb", "'/dev/sdb'"},
      {"ssd=/dev/sda,ssd=/dev/sdb", "twice"},
      {"SSD=/dev/sda,hdd=/dev/sdb", "'SSD'"},
      {"ssd=/dev/sda,hdd=", "'hdd='"},
      {"ssd=ssd:1GiB,iops=-1,hdd=hdd:1GiB", "iops=-1"},
      {"ssd=/dev/sda,hdd=hdd:", "tier 'hdd'"},
  };
  for (const auto& [text, word] : cases) {
    const auto tiers = ParseTierDisks(text);
    EXPECT_EQ(tiers.code(), ErrorCode::kInvalid) << text;
    EXPECT_THAT(tiers.status().message(), HasSubstr(word)) << text;
  }
}

}  // namespace
}  // namespace weir
