#include "client/fuse/process.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

namespace weir::client {
namespace {

constexpr CallerId kCaller{1000, 100, 5};
constexpr char kEverybody[] = "         0          0 4294967295\n";

std::string StatusText(const std::string& uids, const std::string& capabilities) {
  return "Name:\tsome: name\nUid:\t" + uids + "\nGid:\t7\t7\t7\t100\nGroups:\t20 30 \nCapEff:\t" +
         capabilities + "\n";
}

TEST(ProcessTest, GroupsAndCapabilitiesOfAThread) {
  const auto rights =
      ParseRights(kCaller, StatusText("0\t0\t0\t1000", "000000000000000a"), kEverybody, kEverybody);
  ASSERT_TRUE(rights.has_value());
  EXPECT_EQ(rights->groups, (std::vector<gid_t>{20, 30}));
  EXPECT_TRUE(rights->Can(CAP_DAC_OVERRIDE));
  EXPECT_TRUE(rights->Can(CAP_FOWNER));
  EXPECT_FALSE(rights->Can(CAP_CHOWN));
}

TEST(ProcessTest, WhatDecidesAboutNoFileIsLeftOut) {
  const auto rights =
      ParseRights(kCaller, StatusText("1000 1000 1000 1000", "0000000000002000"), {}, {});
  ASSERT_TRUE(rights.has_value());
  EXPECT_EQ(rights->capabilities, 0U);
}

TEST(ProcessTest, AThreadBelongsToItsProcess) {
  if (!SeesProcess(getpid())) GTEST_SKIP() << "/proc is of another namespace";
  EXPECT_EQ(ThreadGroupOf(getpid()), getpid());
  pid_t of_thread = 0;
  std::thread([&] { of_thread = ThreadGroupOf(gettid()); }).join();
  EXPECT_EQ(of_thread, getpid());
  EXPECT_EQ(ThreadGroupOf(0), 0);
  EXPECT_EQ(ThreadGroupOf(INT32_MAX), 0) << "there is no such thread";
}

TEST(ProcessTest, TheCgroupIsThatOfVersion2) {
  EXPECT_EQ(ParseCgroup("9:name=systemd:/init\n0::/system.slice/a b.service\n"),
            "/system.slice/a b.service");
  EXPECT_EQ(ParseCgroup("0::/\n"), "/");
  EXPECT_EQ(ParseCgroup("4:memory:/x\n"), "");
  EXPECT_EQ(ParseCgroup(""), "");
  EXPECT_EQ(ParseCgroup("0::/a\x1b[2J\xff\n"), "/a\\x1b[2J\\xff");
  if (!SeesProcess(getpid())) GTEST_SKIP() << "/proc is of another namespace";
  EXPECT_EQ(CgroupOf(getpid(), geteuid() + 1), "") << "somebody else's";
  EXPECT_EQ(CgroupOf(0, 0), "");
}

// The number is another's by now, or the thread acts for somebody.
TEST(ProcessTest, AThreadThatActsUnderOtherIdsIsNotTheCaller) {
  EXPECT_FALSE(ParseRights(kCaller, StatusText("1000 1000 1000 0", "0"), {}, {}).has_value());
  EXPECT_FALSE(
      ParseRights({1000, 7, 5}, StatusText("1000 1000 1000 1000", "0"), {}, {}).has_value());
  EXPECT_FALSE(ParseRights(kCaller, "", {}, {}).has_value());
}

TEST(ProcessTest, CapabilitiesOfANamespaceEndWithIt) {
  const std::string map = "0 100000 65536\n65536 200000 1\n";
  const auto rights = ParseRights(kCaller, StatusText("0 0 0 1000", "1ffffffffff"), map, "0 7 1\n");
  ASSERT_TRUE(rights.has_value());
  EXPECT_EQ(rights->uids, (std::vector<IdRange>{{100000, 65536}, {200000, 1}}));
  EXPECT_EQ(rights->gids, (std::vector<IdRange>{{7, 1}}));
  EXPECT_FALSE(rights->Can(CAP_CHOWN));
  // One without a map has nobody.
  const auto alone = ParseRights(kCaller, StatusText("0 0 0 1000", "1ffffffffff"), "", "");
  EXPECT_EQ(alone->uids, (std::vector<IdRange>{{0, 0}}));
}

TEST(ProcessTest, WhoHasNoNumberHereIsNotSeen) {
  EXPECT_FALSE(SeesProcess(0));
  EXPECT_FALSE(RightsOf({1000, 100, 0}).has_value());
  EXPECT_TRUE(RightsOf({geteuid(), getegid(), getpid()}).has_value());
  EXPECT_FALSE(RightsOf({geteuid() + 1, getegid(), getpid()}).has_value());
}

}  // namespace
}  // namespace weir::client
