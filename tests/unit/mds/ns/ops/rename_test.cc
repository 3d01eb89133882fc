#include "mds/check/namespace_check.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

constexpr uint32_t kNoReplace = 1;
constexpr uint32_t kExchange = 2;
constexpr uint32_t kWhiteout = 4;

class RenameTest : public MdsFixture {
 protected:
  ErrorCode Rename(uint64_t from, const std::string& a, uint64_t to, const std::string& b,
                   uint32_t flags = 0) {
    return Code(wire::MDS_RENAME, Move(from, a, to, b, flags));
  }
  uint64_t Find(uint64_t parent, const std::string& name) {
    const Answer answer = Try(wire::MDS_LOOKUP, Name(parent, name));
    if (!answer.status.ok()) return 0;
    wire::EntryReply reply;
    EXPECT_TRUE(reply.ParseFromString(answer.body));
    return reply.attr().inode();
  }
};

TEST_F(RenameTest, MovesFilesAndDirectoriesAndKeepsTheCounts) {
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t b = Mkdir(kRoot, "b");
  const uint64_t sub = Mkdir(a, "sub");
  const uint64_t file = Touch(a, "f");
  EXPECT_EQ(Rename(a, "f", b, "g"), ErrorCode::kOk);
  EXPECT_EQ(Find(b, "g"), file);
  EXPECT_EQ(Find(a, "f"), 0u);
  EXPECT_EQ(Rename(a, "sub", b, "sub"), ErrorCode::kOk);
  EXPECT_EQ(Stat(a).attr().nlink(), 2u);
  EXPECT_EQ(Stat(b).attr().nlink(), 3u);
  EXPECT_EQ(Find(sub, ".."), b);
  EXPECT_EQ(List(a), std::vector<std::string>{});
  EXPECT_EQ(Rename(b, "g", b, "h"), ErrorCode::kOk);
  EXPECT_EQ(Find(b, "h"), file);
}

TEST_F(RenameTest, TellsWhatAFileIsAfterwardsUnlessAQuotaHasToBeAsked) {
  const auto moved = [&](const std::string& from, const std::string& to) {
    const auto reply = Ask<wire::TouchedReply>(wire::MDS_RENAME, Move(kRoot, from, kRoot, to));
    return std::vector<wire::Attr>(reply.moved().begin(), reply.moved().end());
  };
  const uint64_t file = Touch(kRoot, "f");
  Mkdir(kRoot, "d");
  clock.Advance(std::chrono::seconds(1));
  const std::vector<wire::Attr> told = moved("f", "g");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].inode(), file);
  EXPECT_EQ(told[0].SerializeAsString(), [&] {
    wire::Attr now = Stat(file).attr();
    now.clear_quota_room();
    return now.SerializeAsString();
  }());
  EXPECT_TRUE(moved("d", "e").empty());
  wire::XattrRequest quota;
  quota.set_inode(kRoot);
  quota.set_name("user.weir.quota.files");
  quota.set_value("100");
  ASSERT_EQ(Code(wire::MDS_SETXATTR, quota), ErrorCode::kOk);
  EXPECT_TRUE(moved("g", "f").empty());
}

TEST_F(RenameTest, ReplacesLikeWithLikeOnly) {
  const uint64_t d = Mkdir(kRoot, "d");
  Mkdir(kRoot, "full");
  Touch(Find(kRoot, "full"), "x");
  const uint64_t f = Touch(kRoot, "f");
  const uint64_t g = Touch(kRoot, "g");
  EXPECT_EQ(Rename(kRoot, "f", kRoot, "d"), ErrorCode::kIsDirectory);
  EXPECT_EQ(Rename(kRoot, "d", kRoot, "f"), ErrorCode::kNotDirectory);
  EXPECT_EQ(Rename(kRoot, "d", kRoot, "full"), ErrorCode::kNotEmpty);
  EXPECT_EQ(Rename(kRoot, "f", kRoot, "g", kNoReplace), ErrorCode::kExists);
  EXPECT_EQ(Rename(kRoot, "f", kRoot, "g"), ErrorCode::kOk);
  EXPECT_EQ(Find(kRoot, "g"), f);
  EXPECT_EQ(Code(wire::MDS_GETATTR, At(g)), ErrorCode::kStale);
  Mkdir(kRoot, "empty");
  EXPECT_EQ(Rename(kRoot, "d", kRoot, "empty"), ErrorCode::kOk);
  EXPECT_EQ(Find(kRoot, "empty"), d);
  EXPECT_EQ(Stat(kRoot).attr().nlink(), 4u);
}

TEST_F(RenameTest, NeverMakesALoop) {
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t b = Mkdir(a, "b");
  EXPECT_EQ(Rename(kRoot, "a", a, "x"), ErrorCode::kInvalid);
  EXPECT_EQ(Rename(kRoot, "a", b, "x"), ErrorCode::kInvalid);
  EXPECT_EQ(Rename(kRoot, "a", a, "b", kExchange), ErrorCode::kInvalid);
  EXPECT_EQ(Rename(kRoot, "a", kRoot, "a"), ErrorCode::kOk);
}

TEST_F(RenameTest, OfTwoLinksToOneFileDoesNothing) {
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(f, kRoot, "g")), ErrorCode::kOk);
  EXPECT_EQ(Rename(kRoot, "f", kRoot, "g"), ErrorCode::kOk);
  EXPECT_EQ(Find(kRoot, "f"), f);
  EXPECT_EQ(Stat(f).attr().nlink(), 2u);
}

TEST_F(RenameTest, ExchangesAFileAndADirectory) {
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t d = Mkdir(a, "d");
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Rename(kRoot, "f", a, "missing", kExchange), ErrorCode::kNotFound);
  EXPECT_EQ(Rename(kRoot, "f", a, "d", kExchange), ErrorCode::kOk);
  EXPECT_EQ(Find(kRoot, "f"), d);
  EXPECT_EQ(Find(a, "d"), f);
  EXPECT_EQ(Stat(a).attr().nlink(), 2u);
  EXPECT_EQ(Stat(kRoot).attr().nlink(), 4u);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(a, "d")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_RMDIR, Name(kRoot, "f")), ErrorCode::kOk);
}

TEST_F(RenameTest, LeavesAWhiteoutWhereTheNameWas) {
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t b = Mkdir(kRoot, "b");
  const uint64_t f = Touch(a, "f");
  const uint64_t sub = Mkdir(a, "sub");
  EXPECT_EQ(Rename(a, "f", b, "f", kWhiteout), ErrorCode::kOk);
  EXPECT_EQ(Rename(a, "sub", b, "sub", kWhiteout | kNoReplace), ErrorCode::kOk);
  EXPECT_EQ(Find(b, "f"), f);
  EXPECT_EQ(Find(b, "sub"), sub);
  EXPECT_EQ(List(a), (std::vector<std::string>{"f", "sub"}));  // where they were
  for (const char* name : {"f", "sub"}) {
    const wire::Attr left = Stat(Find(a, name)).attr();
    EXPECT_EQ(left.mode(), static_cast<uint32_t>(S_IFCHR));
    EXPECT_EQ(left.rdev(), 0u);
    EXPECT_EQ(left.nlink(), 1u);
  }
  EXPECT_EQ(Stat(a).attr().nlink(), 2u);
  EXPECT_EQ(Stat(b).attr().nlink(), 3u);
  EXPECT_EQ(Get(a, "weir.rstats"), "bytes=0 files=2 directories=0 entries=2");
  EXPECT_EQ(Rename(b, "f", a, "f", kWhiteout), ErrorCode::kOk);  // over a whiteout
  EXPECT_EQ(Rename(b, "f", a, "f", kWhiteout | kExchange), ErrorCode::kInvalid);
  EXPECT_EQ(Rename(b, "f", a, "f", 8), ErrorCode::kInvalid);
  CheckReport report;
  ASSERT_TRUE(CheckNamespace(Store(), {}, &report).ok());
  EXPECT_EQ(report.findings.found(), 0u) << ToText(report);
}

TEST_F(RenameTest, BetweenTagsMovesTheTagEpoch) {
  MakeClass("gold");
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t b = Mkdir(kRoot, "b");
  EXPECT_EQ(Tag(a, "gold"), ErrorCode::kOk);
  const uint64_t sub = Mkdir(a, "sub");
  const uint64_t file = Touch(sub, "f");
  EXPECT_EQ(Get(file, "qos.effective_class"), "gold (from /a)");
  const uint64_t before = core->names().DurableTagEpoch();
  EXPECT_EQ(Rename(a, "sub", a, "sub2"), ErrorCode::kOk);
  EXPECT_EQ(core->names().DurableTagEpoch(), before);
  EXPECT_EQ(Rename(a, "sub2", b, "sub"), ErrorCode::kOk);
  EXPECT_EQ(core->names().DurableTagEpoch(), before + 1);
  EXPECT_EQ(Get(file, "qos.effective_class"), "best-effort (default)");
  EXPECT_EQ(Rename(kRoot, "a", b, "a"), ErrorCode::kOk);
  EXPECT_EQ(Get(a, "qos.effective_class"), "gold (from /b/a)");
}

}  // namespace
}  // namespace weir::mds
