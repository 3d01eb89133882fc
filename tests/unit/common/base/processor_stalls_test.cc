#include "common/base/processor_stalls.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weir {
namespace {

class ProcessorStallsTest : public ::testing::Test {
 protected:
  ProcessorStallsTest()
      : path_(::testing::TempDir() + "pressure." + std::to_string(::getpid()) + "." +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~ProcessorStallsTest() override { std::filesystem::remove(path_); }
  void Says(const std::string& text) const { std::ofstream(path_) << text; }

  const std::string path_;
};

TEST_F(ProcessorStallsTest, ReadsTheSumAsOftenAsAsked) {
  Says(
      "some avg10=3.58 avg60=1.88 avg300=10.34 total=160986265\n"
      "full avg10=0.00 avg60=0.00 avg300=0.00 total=77\n");
  const auto stalls = ProcessorStalls::Open(path_);
  ASSERT_TRUE(stalls);
  EXPECT_EQ(stalls->Total(), std::chrono::microseconds(160986265));
  Says("some avg10=3.58 avg60=1.88 avg300=10.34 total=160986300\n");
  EXPECT_EQ(stalls->Total(), std::chrono::microseconds(160986300));
  Says("");
  EXPECT_EQ(stalls->Total(), std::nullopt);
}

TEST_F(ProcessorStallsTest, ThereIsNothingToOpenWhereNothingIsCounted) {
  EXPECT_FALSE(ProcessorStalls::Open(path_));
  for (const char* text : {"", "some", "some avg10=1.0 avg60=1.0 avg300=1.0\n", "full total=5\n",
                           "some avg10=1.0 total=\n", "some avg10=1.0 total=-5\n",
                           "some avg10=1.0 total=99999999999999999999\n", "some total=1x\n"}) {
    Says(text);
    EXPECT_FALSE(ProcessorStalls::Open(path_)) << text;
  }
}

}  // namespace
}  // namespace weir
