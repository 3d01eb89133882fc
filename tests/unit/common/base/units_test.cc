#include "common/base/units.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(UnitsTest, SizesMeanWhatTheInterfaceSays) {
  const std::map<std::string, uint64_t> good = {{"0", 0},
                                                {"4096", 4096},
                                                {"10MiB", 10 << 20},
                                                {"10MB", 10000000},
                                                {"4K", 4096},
                                                {"4k", 4096},
                                                {"1.5G", 3u << 29},
                                                {"1T", uint64_t{1} << 40},
                                                {"10 MiB", 10 << 20},
                                                {"512B", 512},
                                                {"007K", 7168},
                                                {".5K", 512},
                                                {"9223372036854775807", INT64_MAX}};
  for (const auto& [text, bytes] : good) {
    auto size = ParseSize(text);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(UnitsTest, BadSizesAreRefusedByNameWithAnExample) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "-0",
                           "nan",
                           "inf",
                           "1e3",
                           "0x10",
                           "K",
                           "1KK",
                           "1Q",
                           "1.2.3",
                           "9223372036854775808",
                           "8388608T",
                           "99999999999999999999",
                           "1/s",
                           "1 ",
                           "10MiB/s",
                           "+5",
                           "1.00000000000000000000001",
                           "."}) {
    auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.code(), ErrorCode::kInvalid);
    EXPECT_THAT(size.status().message(), ::testing::HasSubstr("'" + std::string(text) + "'"));
    EXPECT_THAT(size.status().message(), ::testing::HasSubstr("10MiB"));
  }
}

TEST(UnitsTest, RatesTakeAPerSecondAndMax) {
  EXPECT_EQ(*ParseRate("200MiB/s"), 200u << 20);
  EXPECT_EQ(*ParseRate("200M"), 200u << 20);
  EXPECT_EQ(*ParseRate("max"), kUnlimitedRate);
  for (const char* text : {"", "/s", "10/m", "maximum", "-3M/s", "10M/s/s"}) {
    EXPECT_EQ(ParseRate(text).code(), ErrorCode::kInvalid) << text;
  }
}

TEST(UnitsTest, DurationsAddUpTheirParts) {
  EXPECT_EQ(*ParseDuration("250us"), 250us);
  EXPECT_EQ(*ParseDuration("20ms"), 20ms);
  EXPECT_EQ(*ParseDuration("1.5h"), 90min);
  EXPECT_EQ(*ParseDuration("1d12h"), 36h);
  EXPECT_EQ(*ParseDuration("2min30s"), 150s);
  EXPECT_EQ(*ParseDuration("0s"), 0s);
  for (const char* text :
       {"", "5", "s", "-1s", "1h1d", "1h1h", "1x", "300000d", "1d-2h", "nan", "1 h", "1d12"}) {
    auto duration = ParseDuration(text);
    ASSERT_EQ(duration.code(), ErrorCode::kInvalid) << text;
    EXPECT_THAT(duration.status().message(), ::testing::HasSubstr("1d12h")) << text;
  }
}

TEST(UnitsTest, FormatsAreShort) {
  EXPECT_EQ(FormatSize(0), "0B");
  EXPECT_EQ(FormatSize(1023), "1023B");
  EXPECT_EQ(FormatSize(1500), "1.46KiB");
  EXPECT_EQ(FormatSize(1048575), "1MiB");
  EXPECT_EQ(FormatRate(160 << 20), "160MiB/s");
  EXPECT_EQ(FormatRate(kUnlimitedRate), "max");
  EXPECT_EQ(FormatDuration(36h), "1d12h");
  EXPECT_EQ(FormatDuration(90s), "1m30s");
  EXPECT_EQ(FormatDuration(24h + 5s), "1d");
  EXPECT_EQ(FormatDuration(1500ms), "1.5s");
  EXPECT_EQ(FormatDuration(250us), "250us");
  EXPECT_EQ(FormatDuration(0s), "0s");
  EXPECT_EQ(FormatDuration(-20ms), "-20ms");
  EXPECT_EQ(FormatDuration(Duration::min()).front(), '-');
}

TEST(UnitsTest, WhatIsFormattedParsesBackToWithinItsDecimals) {
  Prng prng(weir::testing::TestSeed());
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bytes = prng.Next() >> prng.Uniform(1, 63);
    auto size = ParseSize(FormatSize(bytes));
    ASSERT_TRUE(size.ok()) << bytes << " " << FormatSize(bytes);
    ASSERT_NEAR(static_cast<double>(*size), static_cast<double>(bytes),
                static_cast<double>(bytes) * 0.0051 + 1);
    auto rate = ParseRate(FormatRate(bytes));
    ASSERT_TRUE(rate.ok());
    const uint64_t whole = prng.Uniform(0, 1023) << (10 * prng.Uniform(0, 5));
    ASSERT_EQ(*ParseSize(FormatSize(whole)), whole) << FormatSize(whole);
    const Duration duration(static_cast<int64_t>(prng.Next() >> prng.Uniform(1, 63)));
    auto parsed = ParseDuration(FormatDuration(duration));
    ASSERT_TRUE(parsed.ok()) << FormatDuration(duration);
    const auto ns = static_cast<double>(duration.count());
    // Two parts: the dropped rest is below one of the smaller part.
    ASSERT_NEAR(static_cast<double>(parsed->count()), ns, ns * 0.05) << FormatDuration(duration);
  }
}

}  // namespace
}  // namespace weir
