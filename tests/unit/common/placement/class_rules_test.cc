#include "common/placement/class_rules.h"

#include <gtest/gtest.h>

#include "common/placement/cluster_map.h"
#include "common/wire/map.pb.h"

namespace weir {
namespace {

class ClassRulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    uint32_t id = kFirstUserClass.value;
    for (const char* name : {"web", "backup", "mine"}) {
      ClassEntry& entry = map_.classes[ClassId(id)];
      entry.spec.id = ClassId(id++);
      entry.spec.name = name;
    }
  }
  ClassRule& Add(const std::string& class_name) {
    ClassRule rule;
    rule.number = static_cast<uint32_t>(map_.rules.size()) + 1;
    rule.class_name = class_name;
    return map_.rules.emplace_back(rule);
  }
  std::string Of(const RuleSubject& who) const {
    std::string reason;
    EXPECT_EQ(UntaggedClass(map_, who, &reason), UntaggedClass(map_, who));
    return reason;
  }
  static RuleSubject Program(const std::string& exe) { return {0, 0, {}, exe, "host:12", ""}; }

  ClusterMap map_;
};

TEST_F(ClassRulesTest, TheFirstRuleThatMatchesCountsThenTheMountThenBestEffort) {
  Add("backup").uid = 1000;
  Add("web").uid = 1001;
  Add("mine").uid = 1001;
  EXPECT_EQ(Of({1001, 5, {}, "", "host:12", "mine"}), "web (rule 2: uid 1001)");
  EXPECT_EQ(Of({1002, 5, {}, "", "host:12", "mine"}), "mine (mount default)");
  EXPECT_EQ(Of({1002, 5, {}, "", "host:12", "gone"}),
            "best-effort (mount class gone does not exist)");
  EXPECT_EQ(Of({1002, 5, {}, "", "host:12", ""}), "best-effort (default)");
}

TEST_F(ClassRulesTest, AGroupIsTheFirstOrAnyOther) {
  Add("web").gid = 30;
  EXPECT_EQ(Of({1, 30, {}, "", "", ""}), "web (rule 1: gid 30)");
  EXPECT_EQ(Of({1, 5, {8, 30}, "", "", ""}), "web (rule 1: gid 30)");
  EXPECT_EQ(Of({1, 5, {8}, "", "", ""}), "best-effort (default)");
}

TEST_F(ClassRulesTest, ACgroupIsItselfAndAllBelow) {
  EXPECT_FALSE(AnyRuleNamesACgroup(map_.rules));
  Add("web").cgroup = "/system.slice/docker-abc.scope";
  EXPECT_TRUE(AnyRuleNamesACgroup(map_.rules));
  EXPECT_FALSE(AnyRuleNamesAnExecutable(map_.rules));
  const std::string is_web = "web (rule 1: cgroup /system.slice/docker-abc.scope)";
  const auto in = [](std::string_view path) {
    return RuleSubject{.client = "host:12", .mount_class = "", .cgroup = path};
  };
  EXPECT_EQ(Of(in("/system.slice/docker-abc.scope")), is_web);
  EXPECT_EQ(Of(in("/system.slice/docker-abc.scope/worker/7")), is_web);
  EXPECT_EQ(Of(in("/system.slice/docker-abc.scope (deleted)")), is_web);
  for (const char* other : {"/system.slice/docker-abc.scope2", "/system.slice/docker-abc",
                            "/system.slice", "/x/system.slice/docker-abc.scope", "/", ""}) {
    EXPECT_EQ(Of(in(other)), "best-effort (default)") << other;
  }
  Add("backup").cgroup = "/";
  EXPECT_EQ(Of(in("/user.slice")), "backup (rule 2: cgroup /)");
  EXPECT_EQ(Of(in("")), "best-effort (default)") << "of whom it is not known";
}

TEST_F(ClassRulesTest, WhatNoProcessCanBeInIsRefusedWithTheWayOut) {
  for (const char* good :
       {"/", "/a", "/user.slice/user-1000.slice", "/..a/b c", "/sys/fs/cgroups"}) {
    EXPECT_TRUE(CheckCgroupPath(good).ok()) << CheckCgroupPath(good);
  }
  const std::pair<std::string, std::string> bad[] = {
      {"", "begins with '/'"},
      {"system.slice", "begins with '/'"},
      {"/a/", "leave out the '/' at its end"},
      {"/a//b", "each of its parts is a name"},
      {"/a/../b", "each of its parts is a name"},
      {"/./a", "each of its parts is a name"},
      {"/sys/fs/cgroup/a", "as in '/a'"},
      {"/sys/fs/cgroup", "as in '/'"},
      {"/\xc3\xa4", "write bytes beyond ASCII"},
      {"/a\n", "control character"},
      {"/" + std::string(4096, 'a'), "at most 4096 bytes"},
  };
  for (const auto& [path, way_out] : bad) {
    const Status refused = CheckCgroupPath(path);
    EXPECT_EQ(refused.code(), ErrorCode::kInvalid) << path;
    EXPECT_NE(refused.message().find(way_out), std::string::npos) << refused;
  }
}

TEST_F(ClassRulesTest, AnExecutableIsAFileNameOrAWholePath) {
  EXPECT_FALSE(AnyRuleNamesAnExecutable(map_.rules));
  Add("backup").exe = "rsync";
  Add("web").exe = "/opt/web/httpd";
  EXPECT_TRUE(AnyRuleNamesAnExecutable(map_.rules));
  EXPECT_EQ(Of(Program("/usr/bin/rsync")), "backup (rule 1: exe rsync)");
  EXPECT_EQ(Of(Program("/usr/bin/rsync (deleted)")), "backup (rule 1: exe rsync)");
  EXPECT_EQ(Of(Program("/usr/bin/not-rsync")), "best-effort (default)");
  EXPECT_EQ(Of(Program("/opt/web/httpd")), "web (rule 2: exe /opt/web/httpd)");
  EXPECT_EQ(Of(Program("/usr/bin/httpd")), "best-effort (default)");
  EXPECT_EQ(Of(Program("")), "best-effort (default)") << "nobody's process runs nothing";
}

TEST_F(ClassRulesTest, AClientIsItsNameOrItsHost) {
  Add("web").client = "host";
  Add("backup").client = "other:7";
  EXPECT_EQ(Of({0, 0, {}, "", "host:12", ""}), "web (rule 1: client host)");
  EXPECT_EQ(Of({0, 0, {}, "", "host", ""}), "web (rule 1: client host)");
  EXPECT_EQ(Of({0, 0, {}, "", "other:7", ""}), "backup (rule 2: client other:7)");
  EXPECT_EQ(Of({0, 0, {}, "", "other:8", ""}), "best-effort (default)");
}

TEST_F(ClassRulesTest, AllThatIsNamedMustMatch) {
  ClassRule& rule = Add("web");
  rule.uid = 1;
  rule.exe = "httpd";
  EXPECT_EQ(Of({1, 0, {}, "/x/httpd", "", ""}), "web (rule 1: uid 1, exe httpd)");
  EXPECT_EQ(Of({1, 0, {}, "/x/rsync", "", ""}), "best-effort (default)");
  EXPECT_EQ(Of({2, 0, {}, "/x/httpd", "", ""}), "best-effort (default)");
}

TEST_F(ClassRulesTest, AClassThatIsGoneMeansBestEffort) {
  Add("gone").uid = 1;
  Add("web").uid = 1;
  EXPECT_EQ(Of({1, 0, {}, "", "", ""}), "best-effort (class of rule 1 gone does not exist)");
}

TEST_F(ClassRulesTest, TravelWithTheMapAndAreCheckedOnArrival) {
  ClassRule& rule = Add("web");
  rule.uid = 0;
  rule.gid = 7;
  rule.exe = "a/b";
  rule.client = "c";
  Add("backup").exe = "rsync";
  wire::ClusterMap message = ToWire(map_);
  auto back = FromWire(message);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->rules.size(), 2u);
  EXPECT_EQ(DescribeRule(back->rules[0]), "uid 0, gid 7, exe a/b, client c");
  EXPECT_EQ(back->rules[1].class_name, "backup");
  message.mutable_rules(1)->set_number(1);
  EXPECT_EQ(FromWire(message).code(), ErrorCode::kBadMessage) << "a number twice";
  message.mutable_rules(1)->set_number(2);
  message.mutable_rules(1)->clear_exe();
  EXPECT_EQ(FromWire(message).code(), ErrorCode::kBadMessage) << "a rule for nobody";
}

}  // namespace
}  // namespace weir
