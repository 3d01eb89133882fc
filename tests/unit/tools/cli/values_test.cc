#include "tools/cli/values.h"

#include <gtest/gtest.h>

#include "tools/cli/exit_code.h"

namespace weir::cli {
namespace {

// Every refusal names the text that was typed and ends a program with exit 2.
void ExpectRefused(const Status& status, const std::string& text) {
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadUsage) << text;
  EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
}

TEST(ValuesTest, RatesAreWithinReason) {
  EXPECT_EQ(*RateValue("--bandwidth", "200MiB/s"), 200u << 20);
  EXPECT_EQ(*RateValue("--best-effort-min", "0", AtZero::kAllow), 0u);
  EXPECT_EQ(*LimitValue("--limit", "max"), UINT64_MAX);
  for (const char* text : {"0", "-5MiB/s", "max", "1", "1023", "2PiB/s", "99999999999999999999",
                           "1e400", "nan", "", "fast", "10MiB/h"}) {
    ExpectRefused(RateValue("--bandwidth", text).status(), text);
  }
}

TEST(ValuesTest, DurationsArePositiveAndBelowACentury) {
  EXPECT_EQ(*DurationValue("--for", "1.5h"), std::chrono::minutes(90));
  for (const char* text : {"0s", "-1h", "200000d", "soon", ""}) {
    ExpectRefused(DurationValue("--for", text).status(), text);
  }
}

TEST(ValuesTest, WeightsArePositiveFiniteNumbers) {
  EXPECT_EQ(*WeightValue("--weight", "0.5"), 0.5);
  for (const char* text : {"0", "-1", "inf", "nan", "1e300", "1e-300", "two", "2x", ""}) {
    ExpectRefused(WeightValue("--weight", text).status(), text);
  }
}

TEST(ValuesTest, NamesHoldOnlyTheirCharacters) {
  EXPECT_TRUE(CheckName("class", "gold-1_a.B").ok());
  EXPECT_TRUE(CheckName("class", std::string(64, 'x')).ok());
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a/b"),
                                  std::string(65, 'x'), std::string("\xc3\xa4")}) {
    ExpectRefused(CheckName("class", name), name);
  }
}

TEST(ValuesTest, AnOsdIsANumberWithOrWithoutItsPrefix) {
  EXPECT_EQ(*OsdIdValue("3"), 3u);
  EXPECT_EQ(*OsdIdValue("osd.12"), 12u);
  for (const char* text : {"", "osd.", "x", "-1", "1x", "4294967296"}) {
    ExpectRefused(OsdIdValue(text).status(), text);
  }
}

TEST(ValuesTest, PercentagesAndLatencies) {
  EXPECT_DOUBLE_EQ(*PercentValue("--peak", "25%"), 0.25);
  EXPECT_DOUBLE_EQ(*PercentValue("--peak", "12.5"), 0.125);
  for (const char* bad : {"", "%", "101", "-1", "nan", "a"}) {
    EXPECT_FALSE(PercentValue("--peak", bad).ok()) << bad;
  }
  EXPECT_EQ(LatencyValue("--latency", "20ms@99%")->bound, std::chrono::milliseconds(20));
  EXPECT_DOUBLE_EQ(LatencyValue("--latency", "20ms@99%")->part, 0.99);
  EXPECT_DOUBLE_EQ(LatencyValue("--latency", "5ms")->part, 0.95);
  for (const char* bad : {"", "0", "20ms@", "20ms@100%", "20ms@0", "2h", "fast"}) {
    EXPECT_FALSE(LatencyValue("--latency", bad).ok()) << bad;
  }
  EXPECT_EQ(*CountValue("--iops", "12", 1, 20), 12u);
  EXPECT_FALSE(CountValue("--iops", "0", 1, 20).ok());
  EXPECT_FALSE(CountValue("--iops", "1k", 1, 20).ok());
}

}  // namespace
}  // namespace weir::cli
