#include "common/qos/flow_kind.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(FlowKindTest, WordsAreReadBackAndOthersRefusedWithTheList) {
  for (const FlowKind kind :
       {FlowKind::kUser, FlowKind::kCgroup, FlowKind::kOpener, FlowKind::kNone}) {
    const Result<FlowKind> back = ParseFlowKind(ToText(kind));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, kind);
  }
  const Result<FlowKind> unknown = ParseFlowKind("process");
  EXPECT_EQ(unknown.code(), ErrorCode::kInvalid);
  EXPECT_NE(unknown.status().message().find("user, cgroup, opener, none"), std::string::npos)
      << unknown.status();
}

TEST(FlowKindTest, UsersAreTheUidsOfAMountAndWithinThemOpeners) {
  const FlowSource one{.session = 7, .uid = 1001, .opener = 4711, .cgroup = "/a"};
  FlowSource other = one;
  other.cgroup = "/b";
  EXPECT_EQ(KeyOf(one), KeyOf(other));
  other.opener = 4712;
  EXPECT_EQ(KeyOf(one).user, KeyOf(other).user);
  EXPECT_NE(KeyOf(one), KeyOf(other));
  other.uid = 1002;
  EXPECT_NE(KeyOf(one).user, KeyOf(other).user);
  other = one;
  other.session = 8;
  EXPECT_NE(KeyOf(one).user, KeyOf(other).user) << "numbers of users are those of a mount";
}

TEST(FlowKindTest, CgroupsAreUsersWhateverTheUid) {
  const FlowSource one{
      .kind = FlowKind::kCgroup, .session = 7, .uid = 1001, .opener = 4711, .cgroup = "/a"};
  FlowSource other = one;
  other.uid = 1002;
  EXPECT_EQ(KeyOf(one), KeyOf(other));
  other.opener = 1;
  EXPECT_EQ(KeyOf(one).user, KeyOf(other).user);
  EXPECT_NE(KeyOf(one), KeyOf(other));
  other = one;
  other.cgroup = "/a/b";
  EXPECT_NE(KeyOf(one).user, KeyOf(other).user);
  other.cgroup = "";
  EXPECT_NE(KeyOf(one).user, KeyOf(other).user) << "whose cgroup is not known";
  FlowSource unknown = other;
  unknown.uid = other.uid + 1;
  EXPECT_NE(KeyOf(unknown).user, KeyOf(other).user) << "two users whose cgroups are not known";
  other.kind = unknown.kind = FlowKind::kOpener;
  other.opener = unknown.opener = 0;
  EXPECT_NE(KeyOf(unknown).user, KeyOf(other).user) << "two users whose openers are not known";
  other = one;
  other.session = 8;
  EXPECT_NE(KeyOf(one).user, KeyOf(other).user);
}

TEST(FlowKindTest, OpenersAreOneLevelAndNoneIsOneFlow) {
  FlowSource one{.kind = FlowKind::kOpener, .session = 7, .uid = 1001, .opener = 4711};
  FlowSource other = one;
  other.uid = 1002;
  EXPECT_EQ(KeyOf(one), KeyOf(other));
  EXPECT_EQ(KeyOf(one).opener, 0u);
  other.opener = 4712;
  EXPECT_NE(KeyOf(one).user, KeyOf(other).user);
  other.opener = 1001;
  other.kind = FlowKind::kUser;
  other.uid = 4711;
  EXPECT_NE(KeyOf(one).user, KeyOf(other).user) << "a user of the number of an opener";
  one.kind = other.kind = FlowKind::kNone;
  EXPECT_EQ(KeyOf(one), KeyOf(other));
  EXPECT_EQ(KeyOf(one), FlowKey());
}

}  // namespace
}  // namespace weir
