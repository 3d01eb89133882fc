// Goal: a bundle for a bug report tells nobody what the users' files are called.
#include "tools/osdctl/log_names.h"

#include <gtest/gtest.h>

namespace weir::osdctl {
namespace {

TEST(LogNamesTest, NamesOfFilesAreHidden) {
  EXPECT_EQ(WithoutNames("no 'pay roll.xls' in directory 5\n"), "no '…' in directory 5\n");
  EXPECT_EQ(WithoutNames("mounted on /home/ann/work, as root"), "mounted on …, as root");
  EXPECT_EQ(WithoutNames("read=/srv/x\n/srv/y: gone"), "read=…\n…: gone");
}

TEST(LogNamesTest, PartsOfTheClusterAreNot) {
  const char* const kept[] = {"class 'gold' is removed",
                              "mount 'web-1' names class 'silver'",
                              "osd.0 of cluster 1 on /dev/sdb, 1GiB/s",
                              "osd.3 registered at 'tcp://10.0.0.2:7371'",
                              "/etc/weirfs/mds.toml:3: no such setting",
                              "2 of 3, 1/2 done"};
  for (const char* line : kept) EXPECT_EQ(WithoutNames(line), line);
}

TEST(LogNamesTest, AQuoteThatIsNotClosedEndsWithItsLine) {
  EXPECT_EQ(WithoutNames("it's late\nclass 'a'"), "it's late\nclass 'a'");
}

}  // namespace
}  // namespace weir::osdctl
