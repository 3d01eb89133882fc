// Goal: what a reply brings is known here, and what a change of ours has moved and its reply did
// not bring is not answered. Method: replies made by the test, with leases on all inodes.
#include "client/vfs/inode_news.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

using Kind = DirCache::Kind;

constexpr uint64_t kEpoch = 77;
constexpr InodeId kDir{2}, kFile{5}, kOther{6};

class InodeNewsTest : public ::testing::Test {
 protected:
  InodeNewsTest() {
    directories_.BeginSession(kEpoch, clock_.Now());
    leases_.BeginSession(kEpoch, clock_.Now());
    for (const InodePtr& inode : {dir_, file_, other_}) {
      wire::EntryReply reply;
      reply.mutable_file_lease()->set_epoch(kEpoch);
      leases_.Learn(inode, reply, leases_.Asked());
    }
  }
  // Which of directory, file and other may be answered.
  std::string Answerable() {
    std::string all;
    if (leases_.MayAnswer(*dir_)) all += "dir ";
    if (leases_.MayAnswer(*file_)) all += "file ";
    if (leases_.MayAnswer(*other_)) all += "other ";
    return all;
  }
  auto Change() { return directories_.BeginChange({{Kind::kRemove, kDir, "x"}}); }
  // The directory as it is after that.
  static void Fill(wire::Attr* attr) {
    attr->set_inode(kDir.value);
    attr->set_mode(S_IFDIR | 0755);
    attr->set_version(2);
    attr->set_mtime_ns(7);
  }

  testing::ManualClock clock_;
  InodeTable inodes_;
  InodePtr dir_ = inodes_.Lookup(kDir);
  InodePtr file_ = inodes_.Lookup(kFile);
  InodePtr other_ = inodes_.Lookup(kOther);
  FileLeases leases_{clock_, false};
  DirCache directories_{clock_};
  ClassResolver classes_{inodes_, [] { return std::vector<InodeId>(); }, [](auto&&, auto&&) {}};
  Stamps stamps_{clock_};
  InodeNews news_{inodes_, leases_, directories_, classes_, stamps_};
};

TEST_F(InodeNewsTest, WhatWasChangedIsAskedForAndOfTheUnknownEverything) {
  ASSERT_EQ(Answerable(), "dir file other ");
  news_.Changed({kFile});
  EXPECT_EQ(Answerable(), "dir other ");
  news_.Changed({InodeId(99)});
  EXPECT_EQ(Answerable(), "");
}

TEST_F(InodeNewsTest, AReplyThatTellsOfAllItTouchedLeavesTheRest) {
  const auto changing = Change();
  ASSERT_TRUE(directories_.IsChanging(kDir));
  wire::TouchedReply reply;
  Fill(reply.add_directories());
  reply.add_inodes(kFile.value);
  news_.NamesChanged(changing.get(), Result<wire::TouchedReply>(reply));
  EXPECT_FALSE(directories_.IsChanging(kDir));
  EXPECT_EQ(Answerable(), "dir other ");
  EXPECT_EQ(dir_->attr().mtime_ns, 7);
}

TEST_F(InodeNewsTest, WhatGotAnotherNameIsKnownAsItIsNow) {
  wire::TouchedReply reply;
  Fill(reply.add_directories());
  reply.add_inodes(kFile.value);
  reply.add_inodes(kOther.value);  // was replaced
  wire::Attr* const moved = reply.add_moved();
  moved->set_inode(kFile.value);
  moved->set_mode(S_IFREG | 0644);
  moved->set_version(2);
  moved->set_ctime_ns(9);
  news_.NamesChanged(Change().get(), Result<wire::TouchedReply>(reply));
  EXPECT_EQ(Answerable(), "dir file ");
  EXPECT_EQ(file_->attr().ctime_ns, 9);
}

TEST_F(InodeNewsTest, WhatAReplyDoesNotTellOfIsAskedFor) {
  wire::TouchedReply reply;
  reply.add_inodes(kFile.value);
  news_.NamesChanged(Change().get(), Result<wire::TouchedReply>(reply));
  EXPECT_EQ(Answerable(), "other ");
  news_.NamesChanged(Change().get(), Result<wire::TouchedReply>(wire::TouchedReply()));
  EXPECT_EQ(Answerable(), "") << "an older MDS does not tell";
}

TEST_F(InodeNewsTest, ANameThatWasMadeTellsOfItsDirectory) {
  wire::EntryReply reply;
  Fill(reply.mutable_directory());
  news_.NamesChanged(Change().get(), Result<wire::EntryReply>(reply));
  EXPECT_EQ(Answerable(), "dir file other ");
  EXPECT_EQ(dir_->attr().mtime_ns, 7);
  reply.clear_directory();
  news_.NamesChanged(Change().get(), Result<wire::EntryReply>(reply));
  EXPECT_EQ(Answerable(), "file other ");
}

TEST_F(InodeNewsTest, OfAChangeWhoseEndNobodyKnowsEverythingIsAskedFor) {
  using Reply = Result<wire::TouchedReply>;
  news_.NamesChanged(Change().get(), Reply(Status(ErrorCode::kNotFound, "")));
  EXPECT_EQ(Answerable(), "file other ");
  news_.NamesChanged(Change().get(), Reply(Status(ErrorCode::kTimedOut, "")));
  EXPECT_EQ(Answerable(), "");
}

TEST_F(InodeNewsTest, StampsFollowThoseOfOthersUnlessThereAreNone) {
  wire::Attr attr;
  attr.set_ctime_ns(clock_.WallNow().ns + 1'000'000'000);
  FileLeases always{clock_, true};
  InodeNews(inodes_, always, directories_, classes_, stamps_).Heard(attr);
  EXPECT_EQ(stamps_.Next(), clock_.WallNow().ns);
  EXPECT_EQ(news_.Heard(attr).ctime_ns, attr.ctime_ns());
  EXPECT_EQ(stamps_.Next(), attr.ctime_ns());
}

TEST_F(InodeNewsTest, TheClassOfATagIsKnownOnlyFromRepliesThatTellOfIt) {
  file_->set_tag_class(ClassId(16));
  wire::EntryReply reply;
  news_.LearnClass(*file_, reply, leases_.Asked());
  EXPECT_EQ(file_->tag_class(), ClassId(16));
  reply.mutable_effective_class()->set_tagged(true);
  reply.mutable_effective_class()->set_class_id(17);
  news_.LearnClass(*file_, reply, leases_.Asked());
  EXPECT_EQ(file_->tag_class(), ClassId(17));
  reply.mutable_effective_class()->set_tagged(false);
  news_.LearnClass(*file_, reply, leases_.Asked());
  EXPECT_EQ(file_->tag_class(), std::nullopt);
}

}  // namespace
}  // namespace weir::client
