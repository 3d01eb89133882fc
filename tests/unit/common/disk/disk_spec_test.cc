#include "common/disk/disk_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::HasSubstr;

TEST(DiskSpecTest, APathIsADisk) {
  const auto spec = ParseDiskSpec("/dev/sdb");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->path, "/dev/sdb");
  EXPECT_FALSE(spec->emulated());
  EXPECT_EQ(WithPath("sdb", "/dev/sdb"), "/dev/sdb");
}

TEST(DiskSpecTest, AnEmulatedDiskIsASizeOrAnImageAndOptions) {
  const auto hdd = ParseDiskSpec("hdd:20GiB,model=6y080p0,rate=100MB/s,ncq=1,buffer=0");
  ASSERT_TRUE(hdd.ok()) << hdd.status();
  EXPECT_EQ(hdd->image_size, 20ull << 30);
  EXPECT_TRUE(hdd->path.empty());
  const auto& disk = std::get<model::HddModel>(hdd->model);
  EXPECT_EQ(disk.bytes_per_s, 100e6);
  EXPECT_EQ(disk.ncq, 1);
  EXPECT_EQ(disk.write_cache, 0u);
  EXPECT_EQ(disk.mean_seek_s, 9.3e-3);

  const auto ssd = ParseDiskSpec("ssd:/srv/2.img,iops=10000,flush=host");
  ASSERT_TRUE(ssd.ok()) << ssd.status();
  EXPECT_EQ(ssd->path, "/srv/2.img");
  EXPECT_TRUE(ssd->flush_host);
  const auto& flash = std::get<model::SsdModel>(ssd->model);
  EXPECT_DOUBLE_EQ(flash.channels / (flash.read_s + flash.request_s), 10000);
  const auto serial = ParseDiskSpec("ssd:1GiB,rate=100MB/s,channels=1,iops=200");
  ASSERT_TRUE(serial.ok()) << serial.status();
  const auto& one = std::get<model::SsdModel>(serial->model);
  EXPECT_DOUBLE_EQ(one.read_s + one.request_s, 1 / 200.0);
  EXPECT_DOUBLE_EQ(static_cast<double>(one.page) / one.program_s, 100e6);
  EXPECT_EQ(WithPath("ssd:4GiB,iops=9", "/x.img"), "ssd:/x.img,iops=9");
}

TEST(DiskSpecTest, ADirectoryMayHaveCommas) {
  const auto ssd = ParseDiskSpec("ssd:/srv/a,b/c,d=e/2.img,rate=50MB/s,iops=9");
  ASSERT_EQ(ssd.code(), ErrorCode::kInvalid) << "d=e reads like an option";
  const auto plain = ParseDiskSpec("ssd:/srv/a,b/2.img,rate=50MB/s,iops=9");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->path, "/srv/a,b/2.img");
  EXPECT_EQ(plain->options, ",rate=50MB/s,iops=9");
  EXPECT_EQ(ParseDiskSpec("hdd:/srv/a,b/2.img")->path, "/srv/a,b/2.img");
  EXPECT_EQ(WithPath("ssd:/srv/a,b/2.img,rate=50MB/s", "/y,/x.img"), "ssd:/y,/x.img,rate=50MB/s");
}

TEST(DiskSpecTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"hdd:", "hdd:20GiB"},         {"hdd:1GiB,rate", "NAME=VALUE"},
      {"hdd:1GiB,rate=0", "4KiB/s"}, {"hdd:1GiB,model=x", "sata-7200"},
      {"ssd:1GiB,ncq=4", "an ssd"},  {"hdd:1GiB,ncq=0", "from 1"},
      {"ssd:1GiB,flush=no", "host"}, {"ssd:1XiB", "1XiB"},
  };
  for (const auto& [text, named] : cases) {
    const auto spec = ParseDiskSpec(text);
    ASSERT_EQ(spec.code(), ErrorCode::kInvalid) << text;
    EXPECT_THAT(spec.status().message(), HasSubstr(named));
  }
  EXPECT_EQ(OpenDisk("hdd:1GiB").code(), ErrorCode::kInvalid);
  EXPECT_EQ(OpenDisk("hdd:/nowhere/at.all").code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir
