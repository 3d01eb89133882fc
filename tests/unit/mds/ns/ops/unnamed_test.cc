// Goal: a file made without a name lives like one that lost its last name, may get its first name
// once, and nothing is left of it when it does not.
#include <fcntl.h>

#include "mds/check/namespace_check.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class UnnamedTest : public MdsFixture {
 protected:
  wire::Attr Make(uint64_t parent, int flags = O_RDWR, uint32_t mode = 0644) {
    wire::CreateRequest request = New(parent, "", mode);
    request.set_open_flags(static_cast<uint32_t>(flags));
    return Ask<wire::EntryReply>(wire::MDS_TMPFILE, request).attr();
  }
  bool Exists(uint64_t inode) { return Code(wire::MDS_GETATTR, At(inode)) == ErrorCode::kOk; }
  void ExpectSound() {
    CheckReport report;
    ASSERT_TRUE(CheckNamespace(Store(), {}, &report).ok());
    EXPECT_EQ(report.findings.found(), 0u) << ToText(report);
  }
};

TEST_F(UnnamedTest, ItBelongsToItsDirectoryAndIsNotInIt) {
  const uint64_t dir = Mkdir(kRoot, "d", 02777);
  const wire::Attr before = Stat(dir).attr();
  const wire::Attr made = Make(dir, O_RDWR, 04640);
  EXPECT_EQ(made.nlink(), 0u);
  EXPECT_EQ(made.mode(), static_cast<uint32_t>(S_IFREG | 04640));
  EXPECT_EQ(made.gid(), before.gid());
  EXPECT_EQ(Stat(dir).attr().mtime_ns(), before.mtime_ns());
  EXPECT_EQ(Stat(dir).attr().version(), before.version());
  ExpectSound();
}

TEST_F(UnnamedTest, ItGoesWithItsLastHolder) {
  const uint64_t inode = Make(kRoot).inode();
  Grow(inode, 1000);
  EXPECT_EQ(Release(inode), ErrorCode::kOk);
  EXPECT_FALSE(Exists(inode));
  EXPECT_EQ(Get(kRoot, "weir.rstats"), "bytes=0 files=0 directories=0 entries=0");
  ExpectSound();
}

TEST_F(UnnamedTest, NamedItStaysAndCountsWhereItsNameIs) {
  const uint64_t born = Mkdir(kRoot, "born");
  const uint64_t home = Mkdir(kRoot, "home");
  const uint64_t inode = Make(born).inode();
  Grow(inode, 1000);
  const auto linked = Ask<wire::EntryReply>(wire::MDS_LINK, NewLink(inode, home, "name"));
  EXPECT_EQ(linked.attr().nlink(), 1u);
  EXPECT_EQ(Release(inode), ErrorCode::kOk);
  Restart();
  EXPECT_TRUE(Exists(inode));
  EXPECT_EQ(Get(home, "weir.rstats"), "bytes=1000 files=1 directories=0 entries=1");
  EXPECT_EQ(Get(born, "weir.rstats"), "bytes=0 files=0 directories=0 entries=0");
  ExpectSound();
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(inode, kRoot, "second")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(home, "name")), ErrorCode::kOk);
  EXPECT_EQ(Stat(inode).attr().nlink(), 1u);
  ExpectSound();
}

TEST_F(UnnamedTest, AFirstNameIsGivenOnlyOnceAndOnlyWhereItMayBe) {
  const uint64_t never = Make(kRoot, O_RDWR | O_EXCL).inode();
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(never, kRoot, "x")), ErrorCode::kNotFound);
  const uint64_t inode = Make(kRoot).inode();
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(inode, kRoot, "x")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "x")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(inode, kRoot, "y")), ErrorCode::kNotFound);
  ExpectSound();
}

TEST_F(UnnamedTest, ItsClassIsThatOfTheDirectoryItIsNamedIn) {
  const uint32_t gold = MakeClass("gold").id();
  const uint64_t plain = Mkdir(kRoot, "plain");
  const uint64_t rich = Mkdir(kRoot, "rich");
  ASSERT_EQ(Tag(rich, "gold"), ErrorCode::kOk);
  const uint64_t inode = Make(plain).inode();
  EXPECT_NE(Stat(inode).effective_class().class_id(), gold);
  const uint64_t epoch = core->names().DurableTagEpoch();
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(inode, rich, "x")), ErrorCode::kOk);
  EXPECT_EQ(Stat(inode).effective_class().class_id(), gold);
  EXPECT_GT(core->names().DurableTagEpoch(), epoch) << "mounts that have it open do not hear of it";
}

TEST_F(UnnamedTest, WhoMayNotWriteInTheDirectoryMakesNone) {
  const uint64_t dir = Mkdir(kRoot, "d", 0755);
  uid = 1000;
  EXPECT_EQ(Code(wire::MDS_TMPFILE, New(dir, "", 0644)), ErrorCode::kAccess);
  uid = 0;
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Code(wire::MDS_TMPFILE, New(file, "", 0644)), ErrorCode::kNotDirectory);
}

class AccessedTest : public MdsFixture {
 protected:
  void Read(uint64_t inode, Duration ago = {}, bool strict = false) {
    wire::AccessedRequest request;
    auto* read = request.add_reads();
    read->set_inode(inode);
    read->set_age_ns(static_cast<uint64_t>(ago.count()));
    request.set_strict(strict);
    EXPECT_EQ(Code(wire::MDS_ACCESSED, request), ErrorCode::kOk);
  }
  int64_t Atime(uint64_t inode) { return Stat(inode).attr().atime_ns(); }
  int64_t Now() { return clock.WallNow().ns; }
};

TEST_F(AccessedTest, OneReadAfterAChangeMovesTheTimeAndNothingElse) {
  const uint64_t file = Touch(kRoot, "f");
  const wire::Attr before = Stat(file).attr();
  clock.Advance(std::chrono::seconds(10));
  const std::chrono::seconds ago(2);
  Read(file, ago);
  const wire::Attr after = Stat(file).attr();
  EXPECT_EQ(after.atime_ns(), Now() - Duration(ago).count());
  EXPECT_EQ(after.version(), before.version());
  EXPECT_EQ(after.ctime_ns(), before.ctime_ns());
  clock.Advance(std::chrono::seconds(10));
  Read(file);
  EXPECT_EQ(Atime(file), after.atime_ns());
  Read(file, {}, true);
  EXPECT_EQ(Atime(file), Now());
}

TEST_F(AccessedTest, ATimeThatWasSetSinceStays) {
  const uint64_t file = Touch(kRoot, "f");
  clock.Advance(std::chrono::seconds(10));
  wire::SetAttrRequest set = Change(file);
  set.set_atime_ns(77);
  EXPECT_EQ(Code(wire::MDS_SETATTR, set), ErrorCode::kOk);
  Read(file, std::chrono::seconds(1));
  EXPECT_EQ(Atime(file), 77);
  clock.Advance(std::chrono::seconds(1));
  Read(file);
  EXPECT_EQ(Atime(file), Now());
}

TEST_F(AccessedTest, ReadsOfWhatIsGoneAreForgotten) {
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "f")), ErrorCode::kOk);
  Read(file);
  Read(12345, std::chrono::hours(1'000'000));
}

}  // namespace
}  // namespace weir::mds
