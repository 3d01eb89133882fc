#include "common/disk/raw_volume.h"

#include <gtest/gtest.h>

#include "common/disk/mem_device.h"

namespace weir {
namespace {

constexpr uint64_t kRegion = 64 << 20;

// Where the first bytes of a log and of a table lie, in units of a fresh volume.
struct Places {
  uint32_t log, table, units;
};
Places PlacesOn(bool rotational) {
  MemDevice device(kRegion, "mem", rotational);
  EXPECT_TRUE(RawVolume::Format(device, {0, kRegion}).ok());
  auto volume = RawVolume::Mount(device, {0, kRegion});
  EXPECT_TRUE(volume.ok());
  const RawFilePtr log = (*volume)->Create("1.log", true);
  const RawFilePtr table = (*volume)->Create("2.sst", false);
  EXPECT_TRUE((*volume)->Reserve(log, 100'000).ok());
  EXPECT_TRUE((*volume)->Reserve(table, 1'000'000).ok());
  EXPECT_EQ(log->extents.size(), 1u);
  EXPECT_EQ(table->extents.size(), 1u);
  const uint64_t units =
      (*volume)->total_bytes() * log->extents[0].count / (*volume)->CapacityOf(*log);
  return {log->extents[0].unit, table->extents[0].unit, static_cast<uint32_t>(units)};
}

TEST(RawVolumeTest, LogsLieBesideTheDataWhereAHeadGoesBetweenThem) {
  const Places places = PlacesOn(true);
  EXPECT_EQ(places.table, 0u);
  EXPECT_GT(places.log, places.units / 4 * 3);
}

TEST(RawVolumeTest, LogsLieWhereAnImageWasWrittenToElsewhere) {
  const Places places = PlacesOn(false);
  EXPECT_EQ(places.log, 0u);
  EXPECT_GT(places.table, places.units / 4 * 3);
}

}  // namespace
}  // namespace weir
