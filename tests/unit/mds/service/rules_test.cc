// Goal: rules are durable, ordered and explained; a truncation is charged to whoever opened the
// file; a mount may only ask for a class that its user may use; a class with many metadata
// operations does not delay another's.
#include <algorithm>

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class RulesTest : public MdsFixture {
 protected:
  Answer Add(const wire::RuleInfo& rule, std::optional<uint32_t> before = {}) {
    wire::RuleAddRequest request;
    *request.mutable_rule() = rule;
    if (before.has_value()) request.set_before(*before);
    return Admin(wire::MDS_RULE_ADD, request);
  }
  static wire::RuleInfo ForUid(uint32_t uid, const std::string& class_name) {
    wire::RuleInfo rule;
    rule.set_uid(uid);
    rule.set_class_name(class_name);
    return rule;
  }
  ErrorCode Remove(uint32_t number) {
    wire::RuleNumberRequest request;
    request.set_number(number);
    return Admin(wire::MDS_RULE_REMOVE, request).status.code();
  }
  std::string EffectiveAs(uint32_t who, uint64_t inode, const std::string& exe = {}) {
    uid = who;
    wire::XattrRequest request = Xattr(inode, "qos.effective_class");
    request.mutable_caller()->set_exe(exe);
    const auto reply = Ask<wire::XattrReply>(wire::MDS_GETXATTR, request);
    uid = 0;
    return reply.value();
  }
  void OpenSession(const std::string& client, const std::string& mount_class) {
    wire::OpenSessionRequest request;
    request.set_client_name(client);
    request.set_mount_class(mount_class);
    Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
  }
};

TEST_F(RulesTest, AreTriedInOrderAndSurviveARestart) {
  MakeClass("web");
  MakeClass("backup");
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_TRUE(Add(ForUid(1001, "backup")).status.ok());
  EXPECT_EQ(EffectiveAs(1001, f), "backup (rule 1: uid 1001)");
  EXPECT_TRUE(Add(ForUid(1001, "web")).status.ok());
  EXPECT_EQ(EffectiveAs(1001, f), "backup (rule 1: uid 1001)");
  EXPECT_TRUE(Add(ForUid(1001, "web"), 1).status.ok());
  EXPECT_EQ(EffectiveAs(1001, f), "web (rule 3: uid 1001)");
  Restart();
  EXPECT_EQ(EffectiveAs(1001, f), "web (rule 3: uid 1001)");
  EXPECT_EQ(Remove(3), ErrorCode::kOk);
  EXPECT_EQ(Remove(3), ErrorCode::kNotFound);
  EXPECT_EQ(EffectiveAs(1001, f), "backup (rule 1: uid 1001)");
  EXPECT_TRUE(Add(ForUid(1, "web")).status.ok());
  EXPECT_EQ(core->keeper().map()->rules.back().number, 4u) << "a number was given twice";
}

TEST_F(RulesTest, StandBetweenTagsAndTheMount) {
  MakeClass("web");
  MakeClass("gold");
  OpenSession("host:7", "gold");
  wire::RuleInfo rule;
  rule.set_exe("httpd");
  rule.set_client("host");
  rule.set_class_name("web");
  EXPECT_TRUE(Add(rule).status.ok());
  const uint64_t d = Mkdir(kRoot, "d");
  const uint64_t f = Touch(d, "f");
  EXPECT_EQ(EffectiveAs(5, f), "gold (mount default)");
  EXPECT_EQ(EffectiveAs(5, f, "/usr/sbin/httpd"), "web (rule 1: exe httpd, client host)");
  EXPECT_EQ(Tag(d, "gold"), ErrorCode::kOk);
  EXPECT_EQ(EffectiveAs(5, f, "/usr/sbin/httpd"), "gold (from /d)");
  session = 8;
  OpenSession("elsewhere:7", "");
  EXPECT_EQ(EffectiveAs(5, kRoot, "/usr/sbin/httpd"), "best-effort (default)");
  EXPECT_FALSE(Stat(kRoot).effective_class().tagged());
  EXPECT_TRUE(Stat(f).effective_class().tagged());
}

TEST_F(RulesTest, ACgroupIsEnoughForARuleAndSurvivesARestart) {
  MakeClass("web");
  wire::RuleInfo rule;
  rule.set_cgroup("/docker-abc.scope");
  rule.set_class_name("web");
  EXPECT_TRUE(Add(rule).status.ok());
  Restart();
  wire::RuleTestRequest request;
  request.mutable_who()->set_cgroup("/docker-abc.scope/worker");
  EXPECT_EQ(Ask<wire::EffectiveClass>(wire::MDS_RULE_TEST, request).reason(),
            "web (rule 1: cgroup /docker-abc.scope)");
  request.mutable_who()->set_cgroup("/docker-abc.scope2");
  EXPECT_EQ(Ask<wire::EffectiveClass>(wire::MDS_RULE_TEST, request).reason(),
            "best-effort (default)");
  wire::XattrRequest xattr = Xattr(Touch(kRoot, "f"), "qos.effective_class");
  xattr.mutable_caller()->set_cgroup("/docker-abc.scope");
  EXPECT_EQ(Ask<wire::XattrReply>(wire::MDS_GETXATTR, xattr).value(),
            "web (rule 1: cgroup /docker-abc.scope)");
}

TEST_F(RulesTest, WhoMayNotReadAFileMayAskForItsClass) {
  const uint64_t f = Touch(kRoot, "f", 0600);
  EXPECT_EQ(EffectiveAs(5, f), "best-effort (default)");
}

TEST_F(RulesTest, RefusesWhatNamesNobodyOrNoClass) {
  MakeClass("web");
  wire::RuleInfo nobody;
  nobody.set_class_name("web");
  EXPECT_EQ(Add(nobody).status.code(), ErrorCode::kInvalid);
  EXPECT_EQ(Add(ForUid(1, "none")).status.code(), ErrorCode::kNotFound);
  EXPECT_EQ(Add(ForUid(1, "system.purge")).status.code(), ErrorCode::kInvalid);
  EXPECT_EQ(Add(ForUid(1, "web"), 9).status.code(), ErrorCode::kNotFound);
  EXPECT_TRUE(Add(ForUid(1, "best-effort")).status.ok());
  nobody.set_cgroup("docker-abc.scope");
  const Status refused = Add(nobody).status;
  EXPECT_EQ(refused.code(), ErrorCode::kInvalid);
  EXPECT_NE(refused.message().find("begins with '/'"), std::string::npos) << refused;
  EXPECT_EQ(core->keeper().map()->rules.size(), 1u);
}

TEST_F(RulesTest, ATestExplainsWhatWouldBe) {
  MakeClass("web");
  EXPECT_TRUE(Add(ForUid(1001, "web")).status.ok());
  const uint64_t d = Mkdir(kRoot, "d");
  Touch(d, "f");
  wire::RuleTestRequest request;
  request.mutable_who()->set_uid(1001);
  EXPECT_EQ(Ask<wire::EffectiveClass>(wire::MDS_RULE_TEST, request).reason(),
            "web (rule 1: uid 1001)");
  request.mutable_who()->set_uid(1002);
  request.set_mount_class("web");
  request.set_path("/d/f");
  EXPECT_EQ(Ask<wire::EffectiveClass>(wire::MDS_RULE_TEST, request).reason(),
            "web (mount default)");
  EXPECT_EQ(Tag(d, "best-effort"), ErrorCode::kOk);
  EXPECT_EQ(Ask<wire::EffectiveClass>(wire::MDS_RULE_TEST, request).reason(),
            "best-effort (from /d)");
  request.set_path("/d/none");
  EXPECT_EQ(Code(wire::MDS_RULE_TEST, request), ErrorCode::kNotFound);
}

TEST_F(RulesTest, ATruncationIsChargedToTheTagElseToWhoeverOpened) {
  const uint32_t web = MakeClass("web").id();
  const uint32_t gold = MakeClass("gold").id();
  const uint64_t d = Mkdir(kRoot, "d");
  const uint64_t f = Touch(d, "f");
  const auto cut = [&](uint32_t claimed) {
    Grow(f, 9 << 20);
    osds.orders.clear();
    wire::SetAttrRequest request = Change(f);
    request.set_size(1);
    request.mutable_caller()->set_class_id(claimed);
    Ask<wire::EntryReply>(wire::MDS_SETATTR, request);
    EXPECT_FALSE(osds.orders.empty());
    return osds.orders.front().charged_to;
  };
  EXPECT_EQ(cut(web), ClassId(web));
  EXPECT_EQ(cut(kSystemPurge.value), kBestEffort) << "nobody charges WeirFS's own classes";
  EXPECT_EQ(Tag(d, "gold"), ErrorCode::kOk);
  EXPECT_EQ(cut(web), ClassId(gold));
}

TEST_F(RulesTest, AMountGetsOnlyAClassThatItsUserMayUse) {
  wire::SetClassRequest gold;
  gold.set_name("gold");
  gold.add_users(10);
  EXPECT_TRUE(Admin(wire::MDS_CLASS_CREATE, gold).status.ok());
  wire::OpenSessionRequest request;
  request.set_mount_class("gold");
  request.mutable_mounter()->set_uid(11);
  EXPECT_EQ(Code(wire::MDS_OPEN_SESSION, request), ErrorCode::kPermission);
  request.mutable_mounter()->set_uid(10);
  EXPECT_EQ(Code(wire::MDS_OPEN_SESSION, request), ErrorCode::kOk);
  request.set_mount_class("system.recovery");
  request.mutable_mounter()->set_uid(0);
  EXPECT_EQ(Code(wire::MDS_OPEN_SESSION, request), ErrorCode::kPermission);
}

TEST_F(RulesTest, AClassWithAThousandOperationsWaitingDelaysNoOther) {
  const uint32_t hog = MakeClass("hog").id();
  const uint32_t other = MakeClass("other").id();
  std::vector<std::shared_ptr<TestCall>> flood;
  for (int i = 0; i < 1000; ++i) {
    wire::CreateRequest request = New(kRoot, "hog" + std::to_string(i), S_IFREG | 0644);
    request.mutable_caller()->set_class_id(hog);
    flood.push_back(Send(wire::MDS_MKNOD, request));
  }
  wire::CreateRequest request = New(kRoot, "one", S_IFREG | 0644);
  request.mutable_caller()->set_class_id(other);
  const auto call = Send(wire::MDS_MKNOD, request);
  core->names().CommitPrepared();  // what had begun before
  core->names().CommitPrepared();
  ASSERT_TRUE(call->answer.has_value()) << "it waits for the others' thousand";
  EXPECT_FALSE(flood.back()->answer.has_value());
  const auto load = Ask<wire::ClassLoadReply>(wire::MDS_CLASS_LOAD, wire::Empty());
  ASSERT_EQ(load.classes_size(), 2);
  for (const auto& one : load.classes()) {
    EXPECT_EQ(one.operations(), one.class_id() == other ? 1u : 1000u);
    if (one.class_id() == hog) {
      EXPECT_GT(one.queued(), 500u);
    }
  }
  while (core->names().CommitPrepared()) {
  }
  for (const auto& one : flood) EXPECT_TRUE(one->answer.has_value() && one->answer->status.ok());
}

TEST_F(RulesTest, AUserWithAThousandOperationsWaitingDelaysNoOtherOfHisClass) {
  const auto make = [this](uint32_t opener, const std::string& name) {
    wire::CreateRequest request = New(kRoot, name, S_IFREG | 0644);
    request.mutable_caller()->set_opener(opener);
    return Send(wire::MDS_MKNOD, request);
  };
  std::vector<std::shared_ptr<TestCall>> flood;
  for (uint32_t i = 0; i < 1000; ++i) flood.push_back(make(i, "many" + std::to_string(i)));
  uid = 1001;
  const auto other_user = Send(wire::MDS_LOOKUP, Name(kRoot, "none"));
  uid = 0;
  session = 8;
  const auto other_mount = make(1, "one");
  core->names().CommitPrepared();  // what had begun
  EXPECT_TRUE(other_user->answer.has_value());
  EXPECT_TRUE(other_mount->answer.has_value());
  EXPECT_FALSE(flood.back()->answer.has_value());
  while (core->names().CommitPrepared()) {
  }
  for (const auto& one : flood) EXPECT_TRUE(one->answer.has_value() && one->answer->status.ok());
}

TEST_F(RulesTest, TheLoadOfAClassNamesWhoAsks) {
  const uint32_t slow = MakeClass("slow").id();
  wire::SetClassRequest change;
  change.set_name("slow");
  change.set_limit_names_per_s(10);
  ASSERT_TRUE(Admin(wire::MDS_CLASS_SET, change).status.ok());
  const auto look = [&](uint32_t by) {
    uid = by;
    wire::NameRequest request = Name(kRoot, "none");
    request.mutable_caller()->set_class_id(slow);
    request.mutable_caller()->set_opener(4000 + by);
    request.mutable_caller()->set_cgroup("/a.slice");
    return Send(wire::MDS_LOOKUP, request);
  };
  for (int i = 0; i < 20; ++i) look(1001);
  look(1002);
  uid = 0;
  const uint64_t own = session;
  wire::ClassLoadRequest wanted;
  const auto plain = Ask<wire::ClassLoadReply>(wire::MDS_CLASS_LOAD, wanted);
  for (const auto& one : plain.classes()) EXPECT_FALSE(one.has_flows());
  wanted.set_flows(true);
  EXPECT_FALSE(plain.flows());
  const auto load = Ask<wire::ClassLoadReply>(wire::MDS_CLASS_LOAD, wanted);
  EXPECT_TRUE(load.flows()) << "else it would be taken for an MDS that does not know of them";
  int found = 0;
  for (const auto& one : load.classes()) {
    if (one.class_id() != slow) continue;
    ++found;
    const wire::FlowsOfClass& flows = one.flows();
    EXPECT_EQ(flows.waiting(), 20u);
    EXPECT_EQ(flows.requests(), 1u);
    ASSERT_EQ(flows.users_size(), 2);
    EXPECT_EQ(flows.users(0).flow().uid(), 1001u);
    EXPECT_EQ(flows.users(0).flow().cgroup(), "") << "its users are uids";
    EXPECT_EQ(flows.users(0).session(), own);
    EXPECT_EQ(flows.users(0).waiting(), 19u);
    EXPECT_EQ(flows.users(1).flow().uid(), 1002u);
    EXPECT_EQ(flows.users(1).waiting(), 1u);
    ASSERT_EQ(flows.openers_size(), 2);
    EXPECT_EQ(flows.openers(1).flow().opener(), 4000u + 1002);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(RulesTest, OperationsOnNamesAreHeldToTheLimitOfTheirClass) {
  wire::SetClassRequest change;
  const uint32_t slow = MakeClass("slow").id();
  change.set_name("slow");
  change.set_limit_names_per_s(10);
  ASSERT_TRUE(Admin(wire::MDS_CLASS_SET, change).status.ok());
  std::vector<std::shared_ptr<TestCall>> looks;
  for (int i = 0; i < 100; ++i) {
    wire::NameRequest request = Name(kRoot, "none");
    request.mutable_caller()->set_class_id(slow);
    looks.push_back(Send(wire::MDS_LOOKUP, request));
  }
  const auto answered = [&looks] {
    return std::count_if(looks.begin(), looks.end(),
                         [](const auto& one) { return one->answer.has_value(); });
  };
  EXPECT_EQ(answered(), 1);
  for (int tenth = 1; tenth <= 30; ++tenth) {
    clock.Advance(std::chrono::milliseconds(100));
    core->Tick();
    EXPECT_EQ(answered(), 1 + tenth);
  }
  EXPECT_EQ(Code(wire::MDS_LOOKUP, Name(kRoot, "none")), ErrorCode::kNotFound)
      << "another class waits for it";
  const auto load = Ask<wire::ClassLoadReply>(wire::MDS_CLASS_LOAD, wire::Empty());
  for (const auto& one : load.classes()) {
    EXPECT_EQ(one.limited(), one.class_id() == slow ? 99u : 0u);
  }
  change.set_limit_names_per_s(0);
  ASSERT_TRUE(Admin(wire::MDS_CLASS_SET, change).status.ok());
  core->Tick();
  EXPECT_EQ(answered(), 100) << "the limit is lifted";
}

TEST_F(RulesTest, TruncationsThatWaitForOsdsHoldNobodyUp) {
  const uint64_t f = Touch(kRoot, "f");
  Grow(f, 9 << 20);
  osds.hold = true;
  std::vector<std::shared_ptr<TestCall>> cuts;
  for (int i = 0; i < 300; ++i) {
    wire::SetAttrRequest request = Change(f);
    request.set_size(1);
    request.set_known_size(9 << 20);
    cuts.push_back(Send(wire::MDS_SETATTR, request));
    core->names().CommitPrepared();
  }
  EXPECT_NE(Touch(kRoot, "free"), 0u);
  osds.hold = false;
  while (!osds.held.empty()) {
    osds.Release();
    while (core->names().CommitPrepared()) {
    }
  }
  for (const auto& cut : cuts) EXPECT_TRUE(cut->answer.has_value());
}

}  // namespace
}  // namespace weir::mds
