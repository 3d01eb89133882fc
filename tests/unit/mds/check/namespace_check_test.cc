// Each kind of damage to the namespace is found and, where the names leave no doubt, repaired.
#include "mds/check/namespace_check.h"

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class NamespaceCheckTest : public MdsFixture {
 protected:
  // /d/f (also linked as /g), /d/sub, an attribute on f.
  void SetUp() override {
    MdsFixture::SetUp();
    d = Mkdir(kRoot, "d");
    sub = Mkdir(d, "sub");
    f = Touch(d, "f");
    EXPECT_EQ(Code(wire::MDS_LINK, NewLink(f, kRoot, "g")), ErrorCode::kOk);
    EXPECT_EQ(Code(wire::MDS_SETXATTR, Xattr(f, "user.a", "1")), ErrorCode::kOk);
    core.reset();
    ASSERT_EQ(Check().findings.found(), 0u) << ToText(Check());
  }

  CheckReport Check(bool repair = false) {
    CheckReport report;
    EXPECT_TRUE(CheckNamespace(mem, {.repair = repair}, &report).ok());
    return report;
  }
  void Delete(const std::string& key) {
    ASSERT_TRUE(mem.Get(key).ok());
    WriteBatch batch;
    batch.Delete(key);
    ASSERT_TRUE(mem.Apply(batch, Durability::kDurable).ok());
  }
  void Put(const std::string& key, const std::string& value) {
    WriteBatch batch;
    batch.Put(key, value);
    ASSERT_TRUE(mem.Apply(batch, Durability::kDurable).ok());
  }
  template <typename Record>
  void Edit(const std::string& key, std::function<void(Record*)> edit) {
    auto record = DecodeValue<Record>(*mem.Get(key));
    ASSERT_TRUE(record.ok());
    edit(&*record);
    Put(key, EncodeValue(*record));
  }
  void ExpectFound(const std::string& kind) {
    const CheckReport report = Check();
    EXPECT_GT(report.findings.CountOf(kind), 0u) << ToText(report);
    EXPECT_FALSE(report.findings.clean());
  }
  void ExpectRepaired(const std::string& kind) {
    ExpectFound(kind);
    EXPECT_TRUE(Check(true).findings.clean()) << ToText(Check(true));
    EXPECT_EQ(Check().findings.found(), 0u) << ToText(Check());
  }

  uint64_t d = 0, sub = 0, f = 0;
};

TEST_F(NamespaceCheckTest, CountsWhatIsThere) {
  const CheckReport report = Check();
  EXPECT_EQ(report.Fact("inodes"), 4u);
  EXPECT_EQ(report.Fact("directories"), 3u);
  EXPECT_EQ(report.Fact("names"), 4u);
  EXPECT_EQ(report.Fact("unknown_records"), 0u);
}

TEST_F(NamespaceCheckTest, WrongLinkCounts) {
  Edit<InodeRecord>(MakeKey(Table::kInode, f), [](InodeRecord* r) { r->set_nlink(5); });
  Edit<InodeRecord>(MakeKey(Table::kInode, d), [](InodeRecord* r) { r->set_entries(9); });
  ExpectRepaired("link-count");
}

TEST_F(NamespaceCheckTest, WrongTotals) {
  Edit<StateRecord>(kStateKey, [](StateRecord* r) {
    r->set_inode_count(1);
    r->set_next_inode(2);
  });
  ExpectRepaired("count");
}

TEST_F(NamespaceCheckTest, NameWithoutAnInode) {
  Delete(MakeKey(Table::kInode, sub));
  ExpectFound("dangling");
  EXPECT_FALSE(Check(true).findings.clean()) << "what it was, nobody knows";
}

TEST_F(NamespaceCheckTest, InodeWithoutAName) {
  Delete(MakeKey(Table::kDentry, kRoot, "g"));
  Delete(MakeKey(Table::kDentry, d, "f"));
  ExpectRepaired("orphan");
}

TEST_F(NamespaceCheckTest, NameThatReaddirDoesNotFindAndTheOtherWayRound) {
  Delete(MakeKey(Table::kCookie, d, 16));
  ExpectRepaired("cookie");
  CookieRecord ghost;
  ghost.set_name("ghost");
  ghost.set_inode(f);
  Put(MakeKey(Table::kCookie, d, 17), EncodeValue(ghost));
  ExpectRepaired("cookie");
}

TEST_F(NamespaceCheckTest, LinkThatTheInodeDoesNotKnowAndTheOtherWayRound) {
  Delete(MakeKey(Table::kBackref, f, kRoot, "g"));
  ExpectRepaired("link");
  Put(MakeKey(Table::kBackref, f, sub, "ghost"), "");
  ExpectRepaired("link");
}

TEST_F(NamespaceCheckTest, DirectoriesInACircle) {
  Edit<InodeRecord>(MakeKey(Table::kInode, d), [this](InodeRecord* r) { r->set_parent(sub); });
  ExpectFound("tree");
}

TEST_F(NamespaceCheckTest, AliveAndToBeDeleted) {
  Put(MakeKey(Table::kPurge, f), EncodeValue(PurgeRecord()));
  ExpectFound("purge");
}

TEST_F(NamespaceCheckTest, RecordsOfNobody) {
  Put(MakeKey(Table::kXattr, 77, "user.a"), "1");
  Put(MakeKey(Table::kOrphan, 78), "");
  ExpectRepaired("stray");
  Put(MakeKey(Table::kTruncate, 79), EncodeValue(TruncateRecord()));
  ExpectFound("intent");
}

TEST_F(NamespaceCheckTest, NameOfAnotherType) {
  Edit<DentryRecord>(MakeKey(Table::kDentry, d, "f"),
                     [](DentryRecord* r) { r->set_mode(S_IFDIR); });
  ExpectFound("type");
}

TEST_F(NamespaceCheckTest, RecordsThatDoNotDecode) {
  Put(MakeKey(Table::kInode, f), "\1\xff");
  ExpectFound("record");
  Delete(kStateKey);
  EXPECT_GE(Check().findings.CountOf("record"), 2u);
}

}  // namespace
}  // namespace weir::mds
