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

TEST(ShareOnTest, APeakInBytesIsAShareOfWhatTheOsdWasMeasuredToDo) {
  VirtualDisk disk{.type = ClassType::kRentADisk, .peak_bytes_per_s = 40 << 20};
  EXPECT_TRUE(CheckVirtualDisk(disk).ok());
  EXPECT_DOUBLE_EQ(ShareOn(disk, 160 << 20), 0.25);
  EXPECT_DOUBLE_EQ(ShareOn(disk, 80 << 20), 0.5);
  EXPECT_DOUBLE_EQ(ShareOn(disk, 20 << 20), 1) << "no disk has more";
  EXPECT_DOUBLE_EQ(ShareOn(disk, 0), 0);
  EXPECT_DOUBLE_EQ(ShareOn({.type = ClassType::kRentADisk, .peak = 0.3}, 160 << 20), 0.3);
}

}  // namespace
}  // namespace weir
