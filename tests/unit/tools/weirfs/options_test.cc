#include "tools/weirfs/options.h"

#include <gtest/gtest.h>

namespace weir::weirfs {
namespace {

TEST(MountOptionsTest, TakesOursAndPassesOverWhatFstabGivesEveryFilesystem) {
  MountOptions options;
  ASSERT_TRUE(AddMountOptions("rw,class=gold,timeout=30,allow_other", true, &options).ok());
  ASSERT_TRUE(AddMountOptions("_netdev,noauto,nofail,dev,suid,noatime,x-systemd.automount,ro", true,
                              &options)
                  .ok());
  EXPECT_EQ(options.mount_class, "gold");
  EXPECT_EQ(options.timeout, std::chrono::seconds(30));
  EXPECT_TRUE(options.allow_other);
  ASSERT_TRUE(AddMountOptions("noallow_other", true, &options).ok());
  EXPECT_FALSE(options.allow_other);
  EXPECT_TRUE(options.read_only);
  EXPECT_FALSE(options.writeback_cache.has_value());
  EXPECT_FALSE(options.keep_awake.has_value());
  EXPECT_EQ(options.kernel_flags, (std::vector<std::string>{"dev", "suid"}));
}

TEST(MountOptionsTest, OneToFourReactors) {
  MountOptions options;
  EXPECT_EQ(options.reactors, 2U);
  ASSERT_TRUE(AddMountOptions("reactors=4", true, &options).ok());
  EXPECT_EQ(options.reactors, 4U);
  for (const char* wrong :
       {"reactors=0", "reactors=5", "reactors=", "reactors=two", "reactors=11"}) {
    EXPECT_EQ(AddMountOptions(wrong, true, &options).code(), ErrorCode::kInvalid) << wrong;
  }
}

TEST(MountOptionsTest, TheMountHasANameAndAChoiceOfCaches) {
  MountOptions options;
  ASSERT_TRUE(AddMountOptions("client=node7,writeback_cache", true, &options).ok());
  EXPECT_EQ(options.client_name, "node7");
  EXPECT_EQ(options.writeback_cache, true);
  ASSERT_TRUE(AddMountOptions("keep_awake", true, &options).ok());
  EXPECT_EQ(options.keep_awake, true);
  ASSERT_TRUE(AddMountOptions("nokeep_awake", true, &options).ok());
  EXPECT_EQ(options.keep_awake, false);
  ASSERT_TRUE(AddMountOptions("nowriteback_cache", true, &options).ok());
  EXPECT_EQ(options.writeback_cache, false);
}

TEST(MountOptionsTest, NobodyButRootGetsDevicesBack) {
  MountOptions options;
  ASSERT_TRUE(AddMountOptions("dev,suid,nosuid", false, &options).ok());
  EXPECT_EQ(options.kernel_flags, (std::vector<std::string>{"nosuid"}));
}

TEST(MountOptionsTest, TheLastWordOnAccessTimesHolds) {
  MountOptions options;
  ASSERT_TRUE(AddMountOptions("relatime,noatime,nodiratime", true, &options).ok());
  EXPECT_TRUE(options.noatime);
  EXPECT_TRUE(options.nodiratime);
  ASSERT_TRUE(AddMountOptions("strictatime,diratime", true, &options).ok());
  EXPECT_FALSE(options.noatime);
  EXPECT_FALSE(options.nodiratime);
  EXPECT_TRUE(options.strictatime);
  ASSERT_TRUE(AddMountOptions("relatime,lazytime,norelatime,nostrictatime", true, &options).ok());
  EXPECT_FALSE(options.strictatime);
  EXPECT_TRUE(options.kernel_flags.empty());
}

TEST(MountOptionsTest, ACloseWaitsWhereAsked) {
  MountOptions options;
  EXPECT_FALSE(options.sync_close);
  ASSERT_TRUE(AddMountOptions("sync_close", true, &options).ok());
  EXPECT_TRUE(options.sync_close);
  ASSERT_TRUE(AddMountOptions("nosync_close", true, &options).ok());
  EXPECT_FALSE(options.sync_close);
}

TEST(MountOptionsTest, ACommaInAValueStandsBehindABackslashOrInQuotes) {
  MountOptions options;
  ASSERT_TRUE(AddMountOptions("data=/a\\,b\\\\,ro", true, &options).ok());
  EXPECT_EQ(options.data, "/a,b\\");
  EXPECT_TRUE(options.read_only);
  ASSERT_TRUE(AddMountOptions("data=\"/c,suid\",rw", true, &options).ok());
  EXPECT_EQ(options.data, "/c,suid");
  EXPECT_FALSE(options.read_only) << "the last word holds";
  EXPECT_TRUE(options.kernel_flags.empty());
  EXPECT_EQ(AddMountOptions("data=\"/c", true, &options).code(), ErrorCode::kInvalid);
}

TEST(MountOptionsTest, WhatTheKernelShowsOfAMountComesBackWhenItIsMountedAnew) {
  MountOptions options;
  EXPECT_FALSE(AddMountOptions("user_id=0", true, &options).ok());
  ASSERT_TRUE(
      AddMountOptions("user_id=0,group_id=0,max_read=4096,remount,ro", true, &options).ok());
  EXPECT_TRUE(options.remount);
}

TEST(MountOptionsTest, NamesWhatNobodyKnows) {
  for (const char* list : {"clas=gold", "class", "class=", "class=a b", "class=-x", "client=..",
                           "timeout=0", "timeout=-1", "timeout=x", "nosuch"}) {
    MountOptions options;
    EXPECT_EQ(AddMountOptions(list, true, &options).code(), ErrorCode::kInvalid) << list;
  }
}

}  // namespace
}  // namespace weir::weirfs
