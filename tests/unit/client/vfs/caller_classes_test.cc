// Goal: whoever opened a file is charged by the rules of now, wherever his data comes from. Method:
// maps with other rules, and a table of processes that counts how often it is looked at.
#include "client/vfs/caller_classes.h"

#include <gtest/gtest.h>

#include <map>

namespace weir::client {
namespace {

class CallerClassesTest : public ::testing::Test {
 protected:
  void SetUp() override { Install({}); }

  static ClassRule Rule(uint32_t number, std::optional<uint32_t> uid, const std::string& exe,
                        const std::string& class_name) {
    ClassRule rule;
    rule.number = number;
    rule.uid = uid;
    rule.exe = exe;
    rule.class_name = class_name;
    return rule;
  }
  void Install(std::vector<ClassRule> rules) {
    auto map = std::make_shared<ClusterMap>();
    map->epoch = Epoch(++epoch_);
    uint32_t id = kFirstUserClass.value;
    for (const char* name : {"web", "backup", "mount"}) {
      map->classes[ClassId(id)].spec.id = ClassId(id);
      map->classes[ClassId(id++)].spec.name = name;
    }
    map->classes[kWeb].flow = web_flow_;
    map->rules = std::move(rules);
    classes_.SetMap(std::move(map));
  }
  OpenerPtr Open(uid_t uid, pid_t pid = 100) { return classes_.Open(uid, uid, {}, pid); }

  static constexpr ClassId kWeb{16};
  static constexpr ClassId kBackup{17};
  static constexpr ClassId kMount{18};

  static ClassRule InCgroup(uint32_t number, const std::string& cgroup,
                            const std::string& class_name) {
    ClassRule rule = Rule(number, {}, "", class_name);
    rule.cgroup = cgroup;
    return rule;
  }

  uint64_t epoch_ = 0;
  int looked_ = 0;
  int looked_for_cgroup_ = 0;
  FlowKind web_flow_ = FlowKind::kUser;
  std::map<std::pair<pid_t, uid_t>, std::string> cgroups_;
  std::map<std::pair<pid_t, uid_t>, std::string> programs_;
  CallerClasses classes_{{"host:1", "mount"},
                         [this](pid_t pid, uid_t uid) {
                           ++looked_;
                           const auto found = programs_.find({pid, uid});
                           return found == programs_.end() ? std::string() : found->second;
                         },
                         [this](pid_t pid, uid_t uid) {
                           ++looked_for_cgroup_;
                           const auto found = cgroups_.find({pid, uid});
                           return found == cgroups_.end() ? std::string() : found->second;
                         }};
  Inode inode_{InodeId(5)};
};

TEST_F(CallerClassesTest, ATagWinsOverRulesAndTheseOverTheMount) {
  const OpenerPtr web = Open(1001);
  const OpenerPtr other = Open(1002);
  EXPECT_EQ(classes_.Of(inode_, *web), kMount);
  Install({Rule(1, 1001, "", "web")});
  EXPECT_EQ(classes_.Of(inode_, *web), kWeb) << "also of what was open before the rule";
  EXPECT_EQ(classes_.Of(inode_, *other), kMount);
  inode_.set_tag_class(kBackup);
  EXPECT_EQ(classes_.Of(inode_, *web), kBackup);
  inode_.set_tag_class(kBestEffort);  // of a tag whose class is gone
  EXPECT_EQ(classes_.Of(inode_, *web), kBestEffort);
  inode_.set_tag_class(std::nullopt);
  EXPECT_EQ(classes_.Of(inode_, *web), kWeb);
  Install({});
  EXPECT_EQ(classes_.Of(inode_, *web), kMount);
}

TEST_F(CallerClassesTest, TheExecutableIsThatOfTheOpenAndReadOnce) {
  Install({Rule(1, {}, "rsync", "backup")});
  programs_[{100, 1001}] = "/usr/bin/rsync";
  const OpenerPtr opener = Open(1001);
  programs_[{100, 1001}] = "/bin/sh";  // it runs something else meanwhile
  EXPECT_EQ(classes_.Of(*opener), kBackup);
  Install({Rule(1, {}, "rsync", "web")});
  EXPECT_EQ(classes_.Of(*opener), kWeb);
  EXPECT_EQ(looked_, 1);
}

TEST_F(CallerClassesTest, NobodyLooksForExecutablesUntilARuleAsks) {
  programs_[{100, 1001}] = "/usr/bin/rsync";
  const OpenerPtr opener = Open(1001);
  EXPECT_EQ(classes_.Of(*opener), kMount);
  EXPECT_EQ(classes_.ProgramOf(1001, 100).exe, "");
  EXPECT_EQ(looked_, 0);
  Install({Rule(1, {}, "rsync", "backup")});
  EXPECT_EQ(classes_.Of(*opener), kBackup) << "a rule that comes later reaches open files too";
}

TEST_F(CallerClassesTest, NobodysProcessMatchesNoExecutable) {
  Install({Rule(1, {}, "rsync", "backup"), Rule(2, 0, "", "web")});
  programs_[{0, 0}] = "/usr/bin/rsync";
  EXPECT_EQ(classes_.Of(*Open(0, 0)), kWeb);
  EXPECT_EQ(classes_.Of(*Open(1001, 0)), kMount);
  EXPECT_EQ(looked_, 0);
}

TEST_F(CallerClassesTest, WhoOpensNothingIsJudgedByTheSameRules) {
  EXPECT_EQ(classes_.OfCaller(1001, 1, {}, {}), kMount);
  Install({Rule(1, {}, "rsync", "backup"), Rule(2, 1001, "", "web")});
  EXPECT_EQ(classes_.OfCaller(1001, 1, {}, {"/usr/bin/rsync", ""}), kBackup);
  EXPECT_EQ(classes_.OfCaller(1001, 1, {}, {}), kWeb);
  EXPECT_EQ(classes_.OfCaller(1002, 1, {}, {}), kMount);
}

TEST_F(CallerClassesTest, TheCgroupIsThatOfTheOpenAndReadOnce) {
  cgroups_[{100, 1001}] = "/docker-abc.scope/worker";
  const OpenerPtr early = Open(1001);
  EXPECT_EQ(looked_for_cgroup_, 0) << "nobody asks";
  EXPECT_EQ(early->cgroup(), std::nullopt);
  Install({InCgroup(1, "/docker-abc.scope", "web")});
  const OpenerPtr opener = Open(1001);
  EXPECT_EQ(looked_for_cgroup_, 1);
  cgroups_[{100, 1001}] = "/elsewhere";  // it moves
  EXPECT_EQ(classes_.Of(*opener), kWeb);
  EXPECT_EQ(opener->cgroup(), "/docker-abc.scope/worker");
  EXPECT_EQ(classes_.Of(*early), kMount) << "read at the first I/O after the rule came";
  EXPECT_EQ(looked_for_cgroup_, 2);
  EXPECT_EQ(classes_.Of(*Open(1001, 0)), kMount) << "nobody's process";
  EXPECT_EQ(classes_.ProgramOf(1001, 100).cgroup, "/elsewhere");
  EXPECT_EQ(classes_.OfCaller(1001, 1, {}, {"", "/docker-abc.scope"}), kWeb);
}

TEST_F(CallerClassesTest, ASuccessorKnowsTheCgroupOfWhomItsPredecessorHasSeen) {
  Install({InCgroup(1, "/docker-abc.scope", "web")});
  const OpenerPtr opener = classes_.Restore({.uid = 1001, .cgroup = "/docker-abc.scope"});
  EXPECT_EQ(classes_.Of(*opener), kWeb);
  EXPECT_EQ(looked_for_cgroup_, 0);
}

TEST_F(CallerClassesTest, WhoseARequestIsFollowsTheKindOfItsClass) {
  const auto flow_of = [this](const OpenerPtr& opener) { return classes_.FlowOf(kWeb, *opener); };
  cgroups_[{100, 1001}] = cgroups_[{100, 1002}] = "/a";
  const auto open = [this](uid_t uid) { return classes_.Open(uid, uid, {}, 100, 4711); };
  const OpenerPtr one = open(1001), other = open(1002);
  EXPECT_EQ(flow_of(one).kind, FlowKind::kUser);
  EXPECT_NE(flow_of(one).key().user, flow_of(other).key().user);
  EXPECT_EQ(looked_for_cgroup_, 0);

  web_flow_ = FlowKind::kCgroup;
  Install({});
  EXPECT_EQ(flow_of(one).key(), flow_of(other).key()) << "also of what was open before";
  EXPECT_EQ(*flow_of(one).cgroup, "/a");
  EXPECT_EQ(classes_.FlowOf(kBackup, *one).kind, FlowKind::kUser) << "another class";
  (void)flow_of(open(1001));
  EXPECT_EQ(looked_for_cgroup_, 3) << "once for each opener";

  web_flow_ = FlowKind::kOpener;
  Install({});
  EXPECT_EQ(flow_of(one).key(), flow_of(other).key()) << "one program that acts for two users";
  EXPECT_EQ(flow_of(one).cgroup, nullptr);
  web_flow_ = FlowKind::kNone;
  Install({});
  EXPECT_EQ(flow_of(one).key(), FlowKey());
  EXPECT_EQ(flow_of(one).uid, 1001u) << "statistics tell him apart";
}

}  // namespace
}  // namespace weir::client
