// Goal: the rule of access times is that of the mount in the kernel's table, as mount(8) shows it.
#include "client/fuse/mount_flags.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::client {
namespace {

using Rule = AccessTimes::Rule;
using Rules = AccessTimes::Rules;

std::string Line(const std::string& options, const std::string& super,
                 const std::string& where = "/mnt/w") {
  return "52 28 0:57 / " + where + " " + options + " shared:7 master:3 - fuse.weirfs weirfs " +
         super + ",user_id=0\n";
}

TEST(MountFlagsTest, TheWordsOfTheTableDecide) {
  const struct {
    std::string options, super;
    Rules rules;
  } kRows[] = {
      {"rw,nosuid,nodev,relatime", "rw", {Rule::kRelative, Rule::kRelative}},
      {"rw,nosuid", "rw", {Rule::kStrict, Rule::kStrict}},
      {"rw,noatime", "rw", {Rule::kNever, Rule::kNever}},
      {"rw,nodiratime,relatime", "rw", {Rule::kRelative, Rule::kNever}},
      {"rw,nodiratime", "rw", {Rule::kStrict, Rule::kNever}},
      {"ro,relatime", "rw", {Rule::kNever, Rule::kNever}},
      {"rw,relatime", "ro", {Rule::kNever, Rule::kNever}},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(MountFlags::Find(Line(row.options, row.super), "0:57", "/mnt/w"), row.rules)
        << row.options << " - " << row.super;
  }
}

TEST(MountFlagsTest, TheTopmostMountOfTheDeviceInItsPlaceDecides) {
  const std::string other = "53 28 0:58 / /mnt/w rw,noatime - ext4 x rw\n";
  const std::string table = Line("rw", "rw", "/bound") + Line("rw,noatime", "rw") + other +
                            Line("rw,relatime", "rw") + Line("ro", "rw", "/later");
  EXPECT_EQ(MountFlags::Find(table, "0:57", "/mnt/w"), Rules{});
  EXPECT_EQ(MountFlags::Find(table, "0:57", "/gone"), (Rules{Rule::kNever, Rule::kNever}))
      << "where else it is mounted";
  EXPECT_EQ(MountFlags::Find(table, "0:59", "/mnt/w"), std::nullopt);
  EXPECT_EQ(MountFlags::Find(Line("rw,relatime", "rw", "/a\\040b"), "0:57", "/a b"), Rules{});
}

TEST(MountFlagsTest, WhatIsWantedHoldsWithoutAMount) {
  MountFlags flags("/not/mounted", {Rule::kStrict, Rule::kNever});
  EXPECT_EQ(flags.Now(), (Rules{Rule::kStrict, Rule::kNever}));
  flags.Mounted("0:0", true);
  EXPECT_EQ(flags.Now(), (Rules{Rule::kStrict, Rule::kNever}));
}

}  // namespace
}  // namespace weir::client
