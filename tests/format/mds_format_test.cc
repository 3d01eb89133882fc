// Keys and values of the namespace store, version 1.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "mds/format/ns_keys_format.h"
#include "mds/format/ns_values_format.h"
#include "tests/format/golden.h"

namespace weir::mds {
namespace {

using weir::testing::Golden;

InodeRecord SomeInode() {
  InodeRecord inode;
  inode.set_mode(S_IFREG | 0640);
  inode.set_uid(1001);
  inode.set_gid(1002);
  inode.set_nlink(2);
  inode.set_size(uint64_t{1} << 40);
  inode.set_atime_ns(-1);
  inode.set_mtime_ns(1'700'000'000'123'456'789);
  inode.set_ctime_ns(1'700'000'000'123'456'790);
  inode.set_btime_ns(1);
  inode.set_rdev(5);
  inode.set_version(77);
  inode.mutable_layout()->set_stripe_unit(4 << 20);
  inode.mutable_layout()->set_stripe_count(2);
  inode.mutable_layout()->set_object_size(4 << 20);
  inode.mutable_layout()->set_pool(1);
  inode.set_layout_explicit(true);
  inode.set_parent(12);
  inode.set_name("na\xffme");
  inode.set_tag("gold");
  inode.set_symlink_target("../there");
  inode.set_entries(3);
  inode.set_next_cookie(19);
  inode.set_has_xattrs(true);
  return inode;
}

TEST(MdsFormatTest, AnInodeWithSpaceBehindItsEnd) {
  Golden golden("mds_allocated_v1.txt");
  InodeRecord inode = SomeInode();
  inode.set_allocated_end((uint64_t{1} << 40) + 8192);
  inode.set_beyond_bytes(8192);
  const auto read = DecodeValue<InodeRecord>(golden.Expect("inode", EncodeValue(inode)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->allocated_end(), (uint64_t{1} << 40) + 8192);
  EXPECT_EQ(read->beyond_bytes(), 8192u);
}

TEST(MdsFormatTest, KeysOfVersion1) {
  Golden golden("mds_keys_v1.txt");
  golden.Expect("answer", MakeKey(Table::kAnswer, 7, 8));
  golden.Expect("backref", MakeKey(Table::kBackref, 7, 8, "name"));
  golden.Expect("cookie", MakeKey(Table::kCookie, 7, 16));
  golden.Expect("inode", MakeKey(Table::kInode, 0x0102030405060708));
  golden.Expect("orphan", MakeKey(Table::kOrphan, 7));
  golden.Expect("purge", MakeKey(Table::kPurge, 7));
  golden.Expect("truncate", MakeKey(Table::kTruncate, 7));
  golden.Expect("xattr", MakeKey(Table::kXattr, 7, "user.a"));
  golden.Expect("state", kStateKey);
  golden.Expect("cluster", kClusterKey);
  const std::string dentry = golden.Expect("dentry", MakeKey(Table::kDentry, 7, "name"));
  EXPECT_EQ(ReadBigEndian(dentry, kFirstNumber), 7u);
  EXPECT_EQ(dentry.substr(kSecondNumber), "name");
}

TEST(MdsFormatTest, ValuesOfVersion1) {
  Golden golden("mds_values_v1.txt");
  const auto inode = DecodeValue<InodeRecord>(golden.Expect("inode", EncodeValue(SomeInode())));
  ASSERT_TRUE(inode.ok()) << inode.status();
  EXPECT_EQ(inode->SerializeAsString(), SomeInode().SerializeAsString());

  DentryRecord dentry;
  dentry.set_inode(99);
  dentry.set_mode(S_IFDIR);
  dentry.set_cookie(16);
  const auto found = DecodeValue<DentryRecord>(golden.Expect("dentry", EncodeValue(dentry)));
  EXPECT_EQ(found->inode(), 99u);
  CookieRecord cookie;
  cookie.set_name("name");
  cookie.set_inode(99);
  cookie.set_mode(S_IFDIR);
  const auto walked = DecodeValue<CookieRecord>(golden.Expect("cookie", EncodeValue(cookie)));
  EXPECT_EQ(walked->name(), "name");
  StateRecord state;
  state.set_next_inode(1000);
  state.set_inode_count(900);
  state.set_tag_epoch(3);
  state.set_leases_given(true);
  const auto kept = DecodeValue<StateRecord>(golden.Expect("state", EncodeValue(state)));
  EXPECT_EQ(kept->next_inode(), 1000u);
  PurgeRecord purge;
  *purge.mutable_layout() = SomeInode().layout();
  const auto purged = DecodeValue<PurgeRecord>(golden.Expect("purge", EncodeValue(purge)));
  EXPECT_EQ(purged->layout().object_size(), 4u << 20);
  TruncateRecord truncate;
  *truncate.mutable_layout() = SomeInode().layout();
  truncate.set_size(12345);
  truncate.set_class_id(17);
  const auto cut = DecodeValue<TruncateRecord>(golden.Expect("truncate", EncodeValue(truncate)));
  EXPECT_EQ(cut->size(), 12345u);
  AnswerRecord answer;
  answer.set_method(4);
  answer.set_body(std::string("\0\1\2", 3));
  answer.set_opened_inode(99);
  answer.set_open_flags(2);
  const auto given = DecodeValue<AnswerRecord>(golden.Expect("answer", EncodeValue(answer)));
  EXPECT_EQ(given->opened_inode(), 99u);
}

TEST(MdsFormatTest, WritersOfVersion1) {
  Golden golden("mds_writers_v1.txt");
  golden.Expect("writer_key", MakeKey(Table::kWriter, 7));
  golden.Expect("lost_writer_key", MakeKey(Table::kLostWriter, 300));
  WriterRecord writer;
  writer.set_number(300);
  const auto known = DecodeValue<WriterRecord>(golden.Expect("writer", EncodeValue(writer)));
  EXPECT_EQ(known->number(), 300u);
  StateRecord state;
  state.set_last_writer(300);
  EXPECT_EQ(DecodeValue<StateRecord>(golden.Expect("state", EncodeValue(state)))->last_writer(),
            300u);
  InodeRecord inode;
  inode.add_writers(5);
  inode.add_writers(300);
  const auto file = DecodeValue<InodeRecord>(golden.Expect("inode", EncodeValue(inode)));
  ASSERT_EQ(file->writers_size(), 2);
  EXPECT_EQ(file->writers(1), 300u);
}

TEST(MdsFormatTest, ALaterVersionIsRefusedByName) {
  std::string value = EncodeValue(SomeInode());
  value[0] = kValueVersion + 1;
  EXPECT_EQ(DecodeValue<InodeRecord>(value).code(), ErrorCode::kNotSupported);
}

}  // namespace
}  // namespace weir::mds
