#include "common/base/tier_name.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(TierNameTest, ANameComesBackAsItWasWritten) {
  for (const char* text : {"ssd", "hdd", "a", "nvme-2gb"}) {
    const auto name = TierName::Parse(text);
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_EQ(name->ToString(), text);
    EXPECT_EQ(TierName::FromWire(text), *name);
    EXPECT_FALSE(name->empty());
  }
  EXPECT_NE(*TierName::Parse("ssd"), *TierName::Parse("dss"));
}

TEST(TierNameTest, WhatIsNoNameIsRefusedAndOnTheWireTheFirstTier) {
  for (const char* text : {"", "SSD", "nine-long", "a b", "\xff"}) {
    EXPECT_EQ(TierName::Parse(text).code(), ErrorCode::kInvalid) << text;
    EXPECT_TRUE(TierName::FromWire(text).empty()) << text;
  }
}

}  // namespace
}  // namespace weir
