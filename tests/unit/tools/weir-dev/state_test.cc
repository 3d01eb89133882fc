#include "tools/weir-dev/state.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tools/cli/files.h"

namespace weir::dev {
namespace {

State ThreeDaemons() {
  State state;
  state.endpoint = "tcp://127.0.0.1:7000";
  state.osd_size = 1 << 30;
  state.token_rate = "40MiB/s";
  state.metrics = "127.0.0.1:7001";
  state.web = "127.0.0.1:7002";
  state.mds = {.pid = 10, .start_time = 100};
  state.osds.push_back({.disk = "/w/osd.0.img",
                        .is_image = true,
                        .formatted = true,
                        .metrics = "127.0.0.1:7003",
                        .process = {.pid = 11, .start_time = 101}});
  state.osds.push_back({.disk = "",
                        .tiers = "ssd=/w/osd.1.ssd.img,hdd=/dev/sdb",
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
  const State saved = ThreeDaemons();
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

  ASSERT_TRUE(cli::WriteFileAtomically(dir + "/weir-dev.json", "{\"version\":1").ok());
  EXPECT_EQ(LoadState(dir).code(), ErrorCode::kCorrupt);
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
