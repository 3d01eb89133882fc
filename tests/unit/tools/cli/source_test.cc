#include "tools/cli/source.h"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

TEST(SourceTest, ASubtreeFollowsTheEndpointAndMayHaveAnyName) {
  const std::vector<std::vector<std::string>> cases = {
      {"tcp://h:7370", "tcp://h:7370", ""},
      {"tcp://h:7370:/a/b/", "tcp://h:7370", "a/b"},
      {"ipc:///run/w/mds.sock", "ipc:///run/w/mds.sock", ""},
      {"ipc:///run/w/mds.sock:/db", "ipc:///run/w/mds.sock", "db"},
      {"host:/db", "host", "db"},
      {"host:7000:/", "host:7000", ""},
      {"host", "host", ""},
      {"[::1]:7000:/x", "[::1]:7000", "x"},
      {"[fe80::1%eth0]:/x", "[fe80::1%eth0]", "x"},
      {"tcp://[::1]:7000:/x", "tcp://[::1]:7000", "x"},
      {"tcp://[::1]:7000", "tcp://[::1]:7000", ""},
      {"h:/a:/b", "h", "a:/b"},
      {"h:7:/a://b", "h:7", "a:/b"},
      {"h:7://a", "h:7", "a"},
      {"tcp://h:7:/tcp://x:8:/y", "tcp://h:7", "tcp:/x:8:/y"},
      {"h:/a,allow_other,suid", "h", "a,allow_other,suid"},
      {"h:/./a//b/./", "h", "a/b"},
      {"h:/...", "h", "..."},
      {"", "", ""},
      {"[", "[", ""},
  };
  for (const auto& row : cases) {
    const auto source = SplitSource(row[0]);
    ASSERT_TRUE(source.ok()) << row[0];
    EXPECT_EQ(source->endpoint, row[1]) << row[0];
    EXPECT_EQ(source->subtree, row[2]) << row[0];
  }
}

TEST(SourceTest, NoStepUpIsPartOfASubtree) {
  for (const char* text : {"h:/..", "h:/a/..", "h:/../a", "h:/./..", "h:/a/../b/", "h:7:/.."}) {
    EXPECT_EQ(SplitSource(text).code(), ErrorCode::kInvalid) << text;
  }
}

}  // namespace
}  // namespace weir::cli
