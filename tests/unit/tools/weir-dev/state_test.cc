#include "tools/weir-dev/state.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tools/cli/files.h"

namespace weir::dev {
namespace {

State ThreeDaemons(const std::string& dir = "/w") {
  State state;
  state.endpoint = "tcp://127.0.0.1:7000";
  state.osd_size = 1 << 30;
  state.token_rate = "40MiB/s";
  state.metrics = "127.0.0.1:7001";
  state.web = "127.0.0.1:7002";
  state.mds = {.pid = 10, .start_time = 100};
  state.osds.push_back({.disk = dir + "/osd.0.img",
                        .is_image = true,
                        .images = {{"osd.0.img", 1 << 30}},
                        .formatted = true,
                        .metrics = "127.0.0.1:7003",
                        .process = {.pid = 11, .start_time = 101}});
  state.osds.push_back({.disk = "",
                        .tiers = "ssd=" + dir + "/osd.1.ssd.img,hdd=/dev/sdb",
                        .is_image = false,
                        .formatted = false,
                        .process = {}});
  state.mounts.push_back({.path = "/mnt/weir",
                          .metrics = "127.0.0.1:7004",
                          .process = {.pid = 12, .start_time = 102}});
  return state;
}

TEST(WeirDevStateTest, SurvivesTheCommandThatWroteIt) {
  std::string dir = ::testing::TempDir() + "/weir_dev.XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  EXPECT_EQ(LoadState(dir).code(), ErrorCode::kNotFound);
  const State saved = ThreeDaemons(dir);
  ASSERT_TRUE(SaveState(dir, saved).ok());
  const auto loaded = LoadState(dir);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->endpoint, saved.endpoint);
  EXPECT_EQ(loaded->osd_size, saved.osd_size);
  EXPECT_EQ(loaded->token_rate, saved.token_rate);
  EXPECT_EQ(loaded->metrics, saved.metrics);
  EXPECT_EQ(loaded->web, saved.web);
  EXPECT_EQ(loaded->osds[0].metrics, saved.osds[0].metrics);
  EXPECT_EQ(loaded->mounts[0].metrics, saved.mounts[0].metrics);
  EXPECT_EQ(loaded->mds, saved.mds);
  EXPECT_EQ(loaded->osds[0].disk, saved.osds[0].disk);
  EXPECT_TRUE(loaded->osds[0].is_image && loaded->osds[0].formatted);
  EXPECT_EQ(loaded->osds[1].tiers, saved.osds[1].tiers);
  EXPECT_EQ(loaded->osds[0].process, saved.osds[0].process);
  EXPECT_EQ(loaded->mounts[0].path, saved.mounts[0].path);
  EXPECT_EQ(loaded->mounts[0].process, saved.mounts[0].process);

  EXPECT_EQ(loaded->osds[0].images.front().size, uint64_t{1} << 30);

  // The directory may be elsewhere the next time.
  const std::string moved = dir + ".moved";
  std::filesystem::rename(dir, moved);
  EXPECT_EQ(LoadState(moved)->osds[0].disk, moved + "/osd.0.img");
  EXPECT_EQ(LoadState(moved)->osds[1].tiers, "ssd=" + moved + "/osd.1.ssd.img,hdd=/dev/sdb");

  ASSERT_TRUE(cli::WriteFileAtomically(moved + "/weir-dev.json", "{\"version\":1").ok());
  EXPECT_EQ(LoadState(moved).code(), ErrorCode::kCorrupt);
  std::filesystem::remove_all(moved);
}

TEST(WeirDevStateTest, ReadsVersion1WhereverTheDirectoryWasThen) {
  std::string dir = ::testing::TempDir() + "/weir_dev.XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  ASSERT_TRUE(cli::WriteFileAtomically(dir + "/osd.1.ssd.img", "").ok());
  const std::string process = R"("process":{"pid":0,"start_time":0})";
  ASSERT_TRUE(
      cli::WriteFileAtomically(
          dir + "/weir-dev.json",
          R"({"version":1,"endpoint":"tcp://127.0.0.1:7000","osd_size":268435456,)"
          R"("token_rate":"","mds":{"pid":0,"start_time":0},"mounts":[],"osds":[)"
          R"({"disk":"/old/osd.0.img","tiers":"","is_image":true,"image_size":0,)"
          R"("formatted":true,)" +
              process +
              R"(},{"disk":"",)"
              R"("tiers":"ssd=ssd:/old/osd.1.ssd.img,iops=9,hdd=/dev/sdb","is_image":false,)"
              R"("formatted":true,)" +
              process + "}]}")
          .ok());
  const auto loaded = LoadState(dir);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->osds[0].disk, dir + "/osd.0.img");
  EXPECT_EQ(loaded->osds[0].images.front().size, 268435456u);
  EXPECT_EQ(loaded->osds[1].tiers, "ssd=ssd:" + dir + "/osd.1.ssd.img,iops=9,hdd=/dev/sdb");
  std::filesystem::remove_all(dir);
}

TEST(WeirDevStateTest, DaemonsAreNamedByKindAndNumber) {
  State state = ThreeDaemons();
  EXPECT_EQ(ProcessOf(state, *ParseDaemon(state, "mds.0")).pid, 10);
  EXPECT_EQ(ProcessOf(state, *ParseDaemon(state, "osd.0")).pid, 11);
  EXPECT_EQ(ProcessOf(state, *ParseDaemon(state, "mnt.0")).pid, 12);
  for (const char* text : {"osd", "osd.", "osd.x", "cat.0", "osd.0x", ""}) {
    EXPECT_EQ(ParseDaemon(state, text).code(), ErrorCode::kInvalid) << text;
  }
  for (const char* text : {"osd.2", "mds.1", "mnt.7"}) {
    EXPECT_EQ(ParseDaemon(state, text).code(), ErrorCode::kNotFound) << text;
  }
}

}  // namespace
}  // namespace weir::dev
