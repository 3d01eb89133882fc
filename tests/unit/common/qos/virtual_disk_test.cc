#include "common/qos/virtual_disk.h"

#include <gmock/gmock.h>

namespace weir {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(ClassTypeTest, EveryWordIsReadBackAndOthersListWhatThereIs) {
  for (const ClassType type : {ClassType::kBestEffort, ClassType::kRentADisk, ClassType::kLatency,
                               ClassType::kThroughput}) {
    EXPECT_EQ(*ParseClassType(ToText(type)), type);
  }
  EXPECT_EQ(ParseClassType("gold").status().message(),
            "unknown type 'gold' (there is: best-effort, rent-a-disk, latency, throughput)");
}

TEST(CheckVirtualDiskTest, EachTypeNeedsItsOwnNumbers) {
  VirtualDisk disk;
  EXPECT_TRUE(CheckVirtualDisk(disk).ok());
  disk.type = ClassType::kRentADisk;
  EXPECT_THAT(CheckVirtualDisk(disk).message(), HasSubstr("rent-a-disk needs its share"));
  disk.peak = 1.01;
  EXPECT_FALSE(CheckVirtualDisk(disk).ok());
  disk.peak = 1;
  EXPECT_TRUE(CheckVirtualDisk(disk).ok());
  disk.type = ClassType::kLatency;
  EXPECT_THAT(CheckVirtualDisk(disk).message(), HasSubstr("--latency"));
  disk.latency = 1ms;
  EXPECT_TRUE(CheckVirtualDisk(disk).ok());
  disk.type = ClassType::kThroughput;
  EXPECT_THAT(CheckVirtualDisk(disk).message(), HasSubstr("--throughput"));
  disk.throughput_bytes_per_s = 1;
  EXPECT_TRUE(CheckVirtualDisk(disk).ok());
  disk.tolerance = 1;
  EXPECT_THAT(CheckVirtualDisk(disk).message(), HasSubstr("--tolerance"));
}

TEST(AdmitPeakTest, SharesAddUpToOneDespiteRounding) {
  EXPECT_TRUE(AdmitPeak(0, 1).admitted);
  EXPECT_TRUE(AdmitPeak(0.1 + 0.2 + 0.6, 0.1).admitted);  // sums to 1.0000000000000002
  const PeakDecision refused = AdmitPeak(0.8, 0.25);
  EXPECT_FALSE(refused.admitted);
  EXPECT_DOUBLE_EQ(refused.largest, 1 - 0.8);
  EXPECT_FALSE(AdmitPeak(1.5, 0.1).admitted);
  EXPECT_EQ(AdmitPeak(1.5, 0.1).largest, 0);
}

}  // namespace
}  // namespace weir
